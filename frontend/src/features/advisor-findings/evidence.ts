import type { Finding, FindingEvidence } from "@/api/types";
import { asText } from "@/lib/format";
import { statisticQuantity } from "@/lib/statistics";

/** A figure with its unit, or the fact as it was read. */
export function valueInWords(value: FindingEvidence["value"], unit: string): string {
  if (value === null || value === undefined) return "–";
  if (typeof value === "string") return unit ? `${value} ${unit}` : value;
  return asText(statisticQuantity(value, unit));
}

const OF_THE_STREAM =
  /^(lcrs_per_second|transactions_per_second|bytes_per_second|error_queue_transactions|latency\.|lag\.)/;

/** The name under which history has it: those of threads stand below `components`. */
export function historyName(series: string): string {
  return OF_THE_STREAM.test(series) ? series : `components.${series}`;
}

/** The figures that history can chart, each once. */
export function charted(finding: Finding): FindingEvidence[] {
  const seen = new Set<string>();
  return finding.evidence.filter(({ series }) => {
    if (!series || seen.has(series)) return false;
    seen.add(series);
    return true;
  });
}
