import type { Maybe } from "@/lib/format";

/** A spike this many times as high as nearly all of the rest hides it. */
const SPIKE = 5;
const NEARLY_ALL = 0.97;
/** Of fewer points none is rare. */
const POINTS_MIN = 20;
const ROOM = 1.6;

/** Where an axis ends so that the rest can be read; null where no spike hides it. */
export function clipAt(lines: readonly (readonly Maybe[])[]): number | null {
  const values = lines
    .flatMap((line) => line.filter((value): value is number => value !== null && value !== undefined))
    .sort((a, b) => a - b);
  const usual = values[Math.floor(values.length * NEARLY_ALL)] ?? 0;
  const highest = values.at(-1) ?? 0;
  return values.length >= POINTS_MIN && usual > 0 && highest > SPIKE * usual ? ROOM * usual : null;
}
