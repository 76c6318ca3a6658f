// One colour for one thing on all charts: "p99" is the same line on the page Now and in the history.

/** Of the tokens --series-1 to --series-12, by a line's label. */
const FIXED: Record<string, number> = {
  Capture: 1,
  "WAL shipment": 7,
  Builder: 8,
  "Apply reader": 2,
  Applied: 3,
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
const COLOURS = 12;
/** Those that no component beside them has; the first one's is that of "Applied". */
const APPLIERS = [3, 9, 11, 12, 10];
/** In the order of the tokens that destinations get: none is a component's that a chart shows beside them. */
const DESTINATIONS = [3, 9, 11, 12, 10, 4, 8, 7];

/**
 * The colour of one of a stream's several destinations, on every chart, by its place among the stream's destinations.
 * The first one has the colour that "Applied" has where there is only one.
 */
export function destinationColour(place: number): number {
  return DESTINATIONS[place % DESTINATIONS.length] ?? 1;
}

/** The colour of a component, a thread or a figure, by its name; undefined of what has none of its own. */
export function colourOf(thing: string): number | undefined {
  const applier = /^Applier (\d+)$/.exec(thing);
  if (applier) return APPLIERS[(Number(applier[1]) - 1) % APPLIERS.length];
  return FIXED[thing];
}

/**
 * A colour for each line of one chart. A line has its `own`, or that of what its label names. Another one's follows
 * from its label, too, and moves on only where a line of the chart has that colour.
 */
export function coloursOf(lines: readonly { label: string; own?: number }[]): number[] {
  const known = lines.map(({ label, own }) => own ?? colourOf(label));
  const taken = new Set(known);
  return known.map((colour, place) => {
    if (colour !== undefined) return colour;
    const first = sumOf(lines[place]?.label ?? "") % COLOURS;
    const order = Array.from({ length: COLOURS }, (_, step) => ((first + step) % COLOURS) + 1);
    const free = order.find((candidate) => !taken.has(candidate)) ?? first + 1;
    taken.add(free);
    return free;
  });
}

function sumOf(label: string): number {
  return [...label].reduce((sum, letter) => (sum * 31 + (letter.codePointAt(0) ?? 0)) % 65_521, 7);
}
