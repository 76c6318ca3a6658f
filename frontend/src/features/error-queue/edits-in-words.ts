import { formatCount } from "@/lib/format";

interface Decided {
  edited: number;
  left_out: number;
  /** By error handlers. */
  settled?: number;
}

/** The decisions about a transaction's changes, as a sentence with a space before it; or nothing. */
export function editsInWords({ edited, left_out, settled = 0 }: Decided): string {
  const parts = [
    left_out > 0 && `${formatCount(left_out)} left out`,
    edited > 0 && `${formatCount(edited)} edited`,
    settled > 0 && `${formatCount(settled)} refused and settled by error handlers`,
  ].filter(Boolean);
  return parts.length === 0 ? "" : ` Changes: ${parts.join(", ")}.`;
}
