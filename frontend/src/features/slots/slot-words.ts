// A server's report on a slot, in words.
import type { ServerSlot, SlotServer } from "@/api/types";
import { asText, bytes, duration } from "@/lib/format";
import type { StateInWords } from "@/lib/states";

const walStatus: Record<string, StateInWords> = {
  reserved: { label: "Reserved", tone: "good", definition: "The WAL that it needs is there." },
  extended: {
    label: "Extended",
    tone: "good",
    definition: "It needs more WAL than max_wal_size; the server keeps that WAL anyway.",
  },
  unreserved: {
    label: "About to be lost",
    tone: "bad",
    definition:
      "It has passed max_slot_wal_keep_size: the server removes WAL that it needs at the next checkpoint.",
  },
  lost: {
    label: "Lost",
    tone: "bad",
    definition: "The server has removed WAL that it needs: it can never be used again.",
  },
};

export function walInWords({ wal_status, invalidation_reason, why_no_forecast }: ServerSlot): StateInWords {
  const known = wal_status === null ? undefined : walStatus[wal_status];
  if (!known) return { label: "None", tone: "quiet", definition: "It keeps no WAL yet." };
  if (!invalidation_reason) return known;
  const label = `${known.label}: ${invalidation_reason.replaceAll("_", " ")}`;
  return { ...known, label, definition: why_no_forecast ?? known.definition };
}

export const orphan: StateInWords = {
  label: "Orphan",
  tone: "warning",
  definition: "It is named like a stream's slot, but there is no such stream here.",
};

export const unknownStream = (engine: string): StateInWords => ({
  label: `Unknown stream of engine ${engine}`,
  tone: "warning",
  definition:
    "The engine has a stream that the control plane does not know. Drop the stream on the Engines page.",
});

/** When it is lost; else why nobody knows. */
export function forecast({ seconds_to_full, seconds_to_idle_timeout, why_no_forecast }: ServerSlot): string {
  const full =
    seconds_to_full === null
      ? (why_no_forecast ?? "")
      : `Lost in ${asText(duration(seconds_to_full))} at this rate.`;
  if (seconds_to_idle_timeout === null) return full;
  return `Lost in ${asText(duration(seconds_to_idle_timeout))} unless it is read from (idle_replication_slot_timeout). ${full}`.trim();
}

/** Seconds until the slot is lost, by the cause that comes first; null while none is known. */
export function soonestLoss({ seconds_to_full, seconds_to_idle_timeout }: ServerSlot): number | null {
  const known = [seconds_to_full, seconds_to_idle_timeout].filter((seconds) => seconds !== null);
  return known.length > 0 ? Math.min(...known) : null;
}

/** Age of the older of the slot's two xmins, in transactions: vacuum must keep rows that were deleted since. */
export function oldestXmin({ xmin_age, catalog_xmin_age }: ServerSlot): number | null {
  const ages = [xmin_age, catalog_xmin_age].filter((age) => age !== null);
  return ages.length > 0 ? Math.max(...ages) : null;
}

/** The server's own figures in a line. */
export function serverInWords({ version, slots, slots_max, keep_bytes, read_at }: SlotServer): string {
  if (read_at === null) return "Not read yet.";
  const limit = keep_bytes === null ? "without a limit" : `up to ${asText(bytes(keep_bytes))}`;
  return `PostgreSQL ${version ?? "of an unknown version"} · ${slots.length} of ${slots_max ?? "?"} slots · each keeps WAL ${limit}`;
}
