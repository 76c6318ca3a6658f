import { createContext, useContext } from "react";

/** An analysis's verdict on one card of the strip, and how the card opens to its threads. */
export interface StripMark {
  bottleneck: boolean;
  heldBackBy: string | null;
  /** 0..1: share of the time in statements that is spent waiting for another session's lock, as sampled. */
  locked: number;
  opened: boolean;
  onOpen: () => void;
}

/** By a card's title: "Capture", "Appliers". */
export type StripMarks = (title: string) => StripMark | null;

/** Each destination provides its own. */
export const StripMarksContext = createContext<StripMarks>(() => null);

export function useStripMark(title: string): StripMark | null {
  return useContext(StripMarksContext)(title);
}
