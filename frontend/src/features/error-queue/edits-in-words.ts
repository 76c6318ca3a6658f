import { formatCount } from "@/lib/format";

/** The operators' decisions about a transaction's changes, as a sentence with a space before it; or nothing. */
export function editsInWords({ edited, left_out }: { edited: number; left_out: number }): string {
  const parts = [
    left_out > 0 && `${formatCount(left_out)} left out`,
    edited > 0 && `${formatCount(edited)} edited`,
  ].filter(Boolean);
  return parts.length === 0 ? "" : ` Changes: ${parts.join(", ")}.`;
}
