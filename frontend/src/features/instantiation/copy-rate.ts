// The rate of a copy over time, from how many rows were there when.

export interface CopyPoint {
  /** Milliseconds since the epoch. */
  at: number;
  rows: number;
}

/** Rows come in ranges: over shorter spans the curve would only show their ends. */
const SPAN_MS = 10_000;

/**
 * Rows a second at each point, over the span before it. Unknown (null) at the first, and where an engine that was
 * started again has fewer rows than before.
 */
export function ratesOf(points: CopyPoint[]): (number | null)[] {
  let first = 0;
  return points.map((point, place) => {
    while ((points[first] ?? point).at < point.at - SPAN_MS && first < place - 1) first += 1;
    const since = points[first];
    if (!since || since.at >= point.at || since.rows > point.rows) return null;
    return ((point.rows - since.rows) * 1000) / (point.at - since.at);
  });
}
