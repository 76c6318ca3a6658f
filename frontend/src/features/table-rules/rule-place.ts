// The place in a condition that a problem is about: its line, split around the word there.
import type { RuleProblem } from "@/api/types";

export interface MarkedLine {
  before: string;
  /** The word at the place, else the character there; empty at the line's end. */
  marked: string;
  after: string;
}

const WORD = /^[\p{L}\p{N}_$]+/u;

/** Null where the problem is about the whole rule, or the text has changed since and has no such line. Columns count
 * characters, of which JavaScript's strings may need two units each. */
export function markedLine(condition: string, { line, column }: RuleProblem): MarkedLine | null {
  if (line === null || column === null) return null;
  const text = condition.split("\n")[line - 1];
  if (text === undefined) return null;
  const characters = [...text];
  if (column - 1 > characters.length) return null;
  const rest = characters.slice(column - 1);
  const marked = WORD.exec(rest.join(""))?.[0] ?? rest[0] ?? "";
  return {
    before: characters.slice(0, column - 1).join(""),
    marked,
    after: rest.join("").slice(marked.length),
  };
}
