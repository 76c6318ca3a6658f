import { duration, formatAgo, latencyMs, type Maybe, type Quantity } from "./format";
import type { KnownSum } from "./sums";

const RECENT_MS = 5_000;
/** The line of a chart for lower bounds. */
export const P99_AT_LEAST = "p99, at least";

/** Of one interval, and of the last one in which anything came. */
export interface Latency {
  p50_ms: number | null;
  p99_ms: number | null;
  last: { p50_ms: number; p99_ms: number; at: string } | null;
  /** Nothing came though changes wait: p99_ms is the age of the oldest. */
  at_least?: boolean;
}

export interface ShownLatency {
  quantity: Quantity;
  /** When it was so: an idle stream has only its heartbeats. Null: now. */
  ago: string | null;
}

/** The interval's latency; where nothing came in it, the one before, with its age. */
export function latencyShown(latency: Latency, of: "p50_ms" | "p99_ms", now = Date.now()): ShownLatency {
  const { last, at_least, [of]: milliseconds } = latency;
  if (at_least && milliseconds !== null) {
    const { value, unit } = duration(milliseconds / 1000);
    return { quantity: { value: `≥ ${value}`, unit }, ago: null };
  }
  if (latency[of] !== null || !last) return { quantity: latencyMs(latency[of]), ago: null };
  const recent = now - Date.parse(last.at) < RECENT_MS;
  return { quantity: latencyMs(last[of]), ago: recent ? null : formatAgo(last.at, now) };
}

/** Of several samples: that of what arrived, unless something waited for longer while nothing did. */
export function p99OfSpan(p99: Maybe, atLeast: Maybe): KnownSum {
  return (atLeast ?? 0) > (p99 ?? 0)
    ? { value: atLeast ?? null, atLeast: true }
    : { value: p99 ?? null, atLeast: false };
}

/** For sorting and for the worst of several. */
export function latencyValue(latency: Latency, of: "p50_ms" | "p99_ms"): number | null {
  return latency[of] ?? latency.last?.[of] ?? null;
}
