// One colour for one thing on all charts: "p99" is the same line on the page Now and in the history.

/** Of the tokens --series-1 to --series-8, by a line's label. */
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

/** A colour for each line of one chart; lines without a colour of their own get those that are left. */
export function coloursOf(labels: string[]): number[] {
  const taken = new Set(labels.map((label) => FIXED[label]));
  const left = Array.from({ length: COLOURS }, (_, place) => place + 1).filter(
    (colour) => !taken.has(colour),
  );
  return labels.map((label, place) => FIXED[label] ?? left.shift() ?? (place % COLOURS) + 1);
}
