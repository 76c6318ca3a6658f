/** A running stream whose last sample is older than this shows old numbers. */
export const STALE_AFTER_MS = 12_000;

interface Sampled {
  desired_status: string;
  sampled_at: string | null;
}

/** True when the stream should run and its numbers have stopped coming. Never true before the first sample. */
export function isStale(stream: Sampled, now: number): boolean {
  if (stream.desired_status !== "ENABLED" || stream.sampled_at === null) return false;
  return now - Date.parse(stream.sampled_at) > STALE_AFTER_MS;
}
