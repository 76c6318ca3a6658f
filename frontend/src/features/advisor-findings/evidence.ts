import type { Finding, FindingEvidence } from "@/api/types";
import { threadInWords } from "@/lib/advisor";
import { asText } from "@/lib/format";
import { colourOf, coloursOf } from "@/lib/series-colours";
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

interface EvidenceLine {
  label: string;
  colour: number;
  isDashed: boolean;
}

/**
 * Labels and looks of the lines of one chart. A thread's first figure has the thread's colour on every page, its second
 * one the same in dashes; what else there is follows from its label.
 */
export function evidenceLines(evidence: readonly FindingEvidence[]): EvidenceLine[] {
  const things = evidence.map(({ subject }) => threadInWords(subject));
  const lines = evidence.map(({ statistic }, place) => {
    const thing = things[place] ?? "";
    const before = things.slice(0, place).filter((other) => other === thing).length;
    const own = before < 2 ? colourOf(thing) : undefined;
    const isDashed = before === 1 && own !== undefined;
    return { label: `${thing}, ${statistic.toLowerCase()}`, own, isDashed };
  });
  const colours = coloursOf(lines);
  return lines.map(({ label, isDashed }, place) => ({ label, isDashed, colour: colours[place] ?? 1 }));
}
