import { createContext, useContext } from "react";

/** What an analysis says of one card of the strip, and how the card opens to its threads. */
export interface StripMark {
  bottleneck: boolean;
  heldBackBy: string | null;
  /** 0..1 of the time in statements that is waiting for somebody else's lock: what a look at the sessions tells. */
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
