// Cures of a stream's errors, which its row in the overview shows beside its health.
import type { StreamSummary } from "@/api/types";
import { causesOf, haveOneCause } from "@/lib/causes";
import { firstSentence, listed, withFullStop } from "@/lib/sentences";

/** Longer ones are cut after their first sentence. */
const CURE_LENGTH = 200;
/** About as much as the lines hold to which a reason is clamped on a phone. */
const REASON_LENGTH = 300;
const CAUSES_SHOWN = 2;

export interface WhatToDo {
  cures: string[];
  /** The stream's page says more than fits here. */
  more: boolean;
}

/** Reasons that have the cure in them, as those of tables, are not repeated. */
export function whatToDo({ status, error, destinations, health }: StreamSummary): WhatToDo {
  const { reason } = health;
  const cutReason = reason.length > REASON_LENGTH || /And \d+ more\.$/.test(reason);
  // The last report of an engine may be over once it does not answer.
  if (status === "UNKNOWN") return { cures: [], more: false };
  const ofDestinations = causesOf(destinations.filter((own) => own.status !== "DROPPED")).filter(
    (cause) => !haveOneCause(cause.error, error),
  );
  const lines = [
    ...(error ? [{ error, names: "" }] : []),
    ...ofDestinations.map((cause) => ({
      error: cause.error,
      names: destinations.length > 1 ? listed(cause.at.map(({ name }) => name)) : "",
    })),
  ].flatMap((cause) => lineOf(cause, reason));
  return {
    cures: lines.slice(0, CAUSES_SHOWN).map(({ text }) => text),
    more: cutReason || lines.length > CAUSES_SHOWN || lines.some(({ cut }) => cut),
  };
}

interface Told {
  error: { title: string; message: string; cure: string | null };
  names: string;
}

/** Of an error that the reason does not tell, its title as well. */
function lineOf({ error, names }: Told, reason: string): { text: string; cut: boolean }[] {
  const { title, message, cure } = error;
  if (!cure || reason.includes(cure)) return [];
  const isTold = reason.includes(message) || reason.includes(title);
  const brief = cure.length > CURE_LENGTH ? firstSentence(cure) : cure;
  const what = isTold ? brief : `${withFullStop(title)} ${brief}`;
  return [{ text: names ? `${names}: ${what}` : what, cut: brief !== cure }];
}
