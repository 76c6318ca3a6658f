// The rate of a copy over time, from what is seen of it: how many rows were there when.

export interface CopyPoint {
  at: number;
  rows: number;
}

/** Rows come in ranges: over shorter spans the curve would only show their ends. */
const SPAN_MS = 10_000;
const POINTS_MAX = 900;

export function withPoint(points: CopyPoint[], point: CopyPoint): CopyPoint[] {
  const last = points.at(-1);
  if (last && (point.at <= last.at || point.rows < last.rows)) return last.at < point.at ? [point] : points;
  return [...points, point].slice(-POINTS_MAX);
}

/** Rows a second at each point, over the span before it. Unknown (null) at the first. */
export function ratesOf(points: CopyPoint[]): (number | null)[] {
  let first = 0;
  return points.map((point, place) => {
    while ((points[first] ?? point).at < point.at - SPAN_MS && first < place - 1) first += 1;
    const since = points[first];
    return since && since.at < point.at ? ((point.rows - since.rows) * 1000) / (point.at - since.at) : null;
  });
}
