import { asText, bytes, duration, formatTime } from "@/lib/format";
import { growth, type LagValues } from "@/lib/lag";
import { Metric } from "@/ui/quantity";

interface LagFiguresProps {
  lag: LagValues;
  /** Transactions in the error queue: unless it is known to be empty, nothing is caught up, whatever the positions say. */
  parked: number | null;
  /** Of the stream: what the source keeps for all destinations. */
  slot?: { retained_bytes: number; read_at: string; seconds_to_idle_timeout: number | null } | null;
  /** Nobody works for it now: the figure is the source's whole WAL since, not what waits to be applied. */
  standing?: boolean;
  size?: "sm" | "lg";
}

/** Until idle_replication_slot_timeout takes the slot; null where it does not. */
function idleLoss({
  seconds_to_idle_timeout: left,
}: {
  seconds_to_idle_timeout: number | null;
}): string | null {
  return left === null ? null : `slot lost in ${asText(duration(left))} unless read`;
}

/** How much waits, since when, whether it grows, and when it is worked off or full. */
export function LagFigures({ lag, parked, slot, standing = false, size = "sm" }: LagFiguresProps) {
  // Unknown is not caught up.
  const secondsLeft = lag.bytes === 0 ? (parked === 0 ? 0 : null) : lag.seconds;
  return (
    <>
      <Metric metric={standing ? "standingBytes" : "lagBytes"} size={size} quantity={bytes(lag.bytes)} />
      <Metric metric="lagAge" size={size} quantity={duration(lag.age_seconds)} />
      <Metric metric="lagGrowth" size={size} quantity={growth(lag.growth_bytes_per_second)} />
      {lag.seconds_to_full === null ? (
        <Metric metric="lagSeconds" size={size} quantity={duration(secondsLeft)} />
      ) : (
        <Metric metric="lagFull" size={size} quantity={duration(lag.seconds_to_full)} />
      )}
      {slot !== undefined && (
        <Metric
          metric="retainedWal"
          label={slot ? `WAL kept, ${formatTime(slot.read_at).slice(-8)}` : undefined}
          size={size}
          quantity={bytes(slot?.retained_bytes)}
          note={slot && idleLoss(slot)}
        />
      )}
    </>
  );
}
