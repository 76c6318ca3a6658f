/** A running stream whose last sample is older than this shows old numbers. Health waits as long for a report. */
export const STALE_AFTER_MS = 15_000;

interface Reported {
  desired_status: string;
  status: string;
  observed_at: string | null;
  sampled_at: string | null;
}

/**
 * True when the stream should run and its numbers have stopped coming: the last sample is old, or has expired (null).
 * Never true before the engine's first report on a stream that is new or starts.
 */
export function isStale(stream: Reported, now: number): boolean {
  if (stream.desired_status !== "ENABLED" || stream.observed_at === null) return false;
  const isOld = (time: string) => now - Date.parse(time) > STALE_AFTER_MS;
  if (stream.sampled_at !== null) return isOld(stream.sampled_at);
  return stream.status === "ENABLED" || isOld(stream.observed_at);
}
