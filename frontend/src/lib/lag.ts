// The replication lag in words. It is the source's word against what is applied: it exists whether or not anything runs.
import { byteRate, duration, type Quantity } from "./format";
import type { ObservedStatus } from "./states";

export interface LagValues {
  bytes: number | null;
  seconds: number | null;
  age_seconds: number | null;
  growth_bytes_per_second?: number | null;
  seconds_to_full: number | null;
}

/** Stopped, paused or ended by an error: its lag is all that the source has written since. */
export function isStanding({ status }: { status: ObservedStatus }): boolean {
  return status === "DISABLED" || status === "ABORTED";
}

/** With its sign: it shrinks as well. */
export function growth(bytesPerSecond: number | null | undefined): Quantity {
  if (!bytesPerSecond) return byteRate(bytesPerSecond);
  const { value, unit } = byteRate(Math.abs(bytesPerSecond));
  return { value: `${bytesPerSecond < 0 ? "−" : "+"}${value}`, unit };
}

/** Below a lag's size in a table: for how long it waits, and until when there is room. */
export function lagInBrief({ bytes: waiting, age_seconds, seconds, seconds_to_full }: LagValues): string {
  const words = ({ value, unit }: Quantity) => `${value} ${unit}`;
  if (!waiting) return "";
  const parts = [
    age_seconds !== null && `for ${words(duration(age_seconds))}`,
    seconds !== null && `done in ${words(duration(seconds))}`,
    seconds_to_full !== null && `full in ${words(duration(seconds_to_full))}`,
  ];
  return parts.filter(Boolean).join(", ");
}

/** An idle stream's position moves with heartbeats: less than this is no delay. */
const BEHIND_SECONDS = 60;

interface Waited {
  status: ObservedStatus;
  lag: Pick<LagValues, "bytes" | "age_seconds">;
  latency: { p99_ms: number | null; at_least?: boolean };
}

/** The age of the oldest change that a destination has not applied though it should have; null where it keeps up. */
export function secondsBehind(destination: Waited): number | null {
  const { latency, lag } = destination;
  const waits = latency.at_least && latency.p99_ms !== null ? latency.p99_ms / 1000 : 0;
  const age = lag.bytes ? (lag.age_seconds ?? 0) : 0;
  return Math.max(waits, isStanding(destination) || age > BEHIND_SECONDS ? age : 0) || null;
}
