// One colour for one thing on all charts: "p99" is the same line on the page Now and in the history.

/** Of the tokens --series-1 to --series-12, by a line's label. */
const FIXED: Record<string, number> = {
  Capture: 1,
  "Apply reader": 2,
  Applied: 3,
  "Applier 1": 3,
  Coordinator: 4,
  Receiver: 6,
  Sender: 5,
  Queue: 7,
  "Apply queue": 8,
  Backlog: 4,
  "Not yet applied": 4,
  p50: 1,
  p99: 3,
  "p99, at least": 2,
};
const COLOURS = 8;
/** In the order of the tokens that destinations get: none is a component's that a chart shows beside them. */
const DESTINATIONS = [3, 9, 11, 12, 10, 4, 8, 7];

/**
 * The colour of one of a stream's several destinations, on every chart, by its place among the stream's destinations.
 * The first one has the colour that "Applied" has where there is only one.
 */
export function destinationColour(place: number): number {
  return DESTINATIONS[place % DESTINATIONS.length] ?? 1;
}

/**
 * A colour for each line of one chart. A line has its `own`, or the one that its label stands for; others get those
 * that are left.
 */
export function coloursOf(lines: readonly { label: string; own?: number }[]): number[] {
  const fixed = lines.map(({ label, own }) => own ?? FIXED[label]);
  const left = Array.from({ length: COLOURS }, (_, place) => place + 1).filter(
    (colour) => !fixed.includes(colour),
  );
  return fixed.map((colour, place) => colour ?? left.shift() ?? (place % COLOURS) + 1);
}
