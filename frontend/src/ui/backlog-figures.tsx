import { type BacklogValues, growth } from "@/lib/backlog";
import { bytes, duration, formatTime } from "@/lib/format";
import { Metric } from "@/ui/quantity";

interface BacklogFiguresProps {
  backlog: BacklogValues;
  /** Transactions in the error queue: as long as there are any, it is not caught up, whatever the positions say. */
  parked: number | null;
  /** Of the stream: what the source keeps for all destinations. */
  slot?: { retained_bytes: number; read_at: string } | null;
  /** Nobody works for it now: the figure is the source's whole WAL since, not what waits to be applied. */
  standing?: boolean;
  size?: "sm" | "lg";
}

/** How much waits, since when, whether it grows, and when it is worked off or full. */
export function BacklogFigures({
  backlog,
  parked,
  slot,
  standing = false,
  size = "sm",
}: BacklogFiguresProps) {
  // Unknown is not caught up.
  const secondsLeft = backlog.bytes === 0 ? (parked ? null : 0) : backlog.seconds;
  return (
    <>
      <Metric
        metric={standing ? "standingBytes" : "backlogBytes"}
        size={size}
        quantity={bytes(backlog.bytes)}
      />
      <Metric metric="backlogAge" size={size} quantity={duration(backlog.age_seconds)} />
      <Metric metric="backlogGrowth" size={size} quantity={growth(backlog.growth_bytes_per_second)} />
      {backlog.seconds_to_full === null ? (
        <Metric metric="backlogSeconds" size={size} quantity={duration(secondsLeft)} />
      ) : (
        <Metric metric="backlogFull" size={size} quantity={duration(backlog.seconds_to_full)} />
      )}
      {slot !== undefined && (
        <Metric
          metric="retainedWal"
          label={slot ? `WAL kept, ${formatTime(slot.read_at).slice(-8)}` : undefined}
          size={size}
          quantity={bytes(slot?.retained_bytes)}
        />
      )}
    </>
  );
}
