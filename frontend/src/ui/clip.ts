import type { Maybe } from "@/lib/format";

type Lines = readonly (readonly Maybe[])[];

/** A spike this many times as high as nearly all of the rest hides it. */
const SPIKE = 5;
const NEARLY_ALL = 0.97;
/** Of fewer points none is rare. */
const POINTS_MIN = 20;
const ROOM = 1.6;

/** Where an axis ends so that the rest can be read; null where no spike hides it. Live charts ask for every sample, so
 * the values are sorted only where there is a spike. */
export function clipAt(lines: Lines): number | null {
  let highest = 0;
  let known = 0;
  each(lines, (value) => {
    known += 1;
    if (value > highest) highest = value;
  });
  let low = 0;
  each(lines, (value) => {
    if (value < highest / SPIKE) low += 1;
  });
  const place = Math.floor(known * NEARLY_ALL);
  if (known < POINTS_MIN || low <= place) return null;
  const usual = sorted(lines, known)[place] ?? 0;
  return usual > 0 ? ROOM * usual : null;
}

function each(lines: Lines, visit: (value: number) => void): void {
  for (const line of lines) {
    for (const value of line) {
      if (value !== null && value !== undefined) visit(value);
    }
  }
}

function sorted(lines: Lines, known: number): Float64Array {
  const values = new Float64Array(known);
  let end = 0;
  each(lines, (value) => {
    values[end] = value;
    end += 1;
  });
  return values.sort();
}
