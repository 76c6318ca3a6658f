// Values of the advisor's statistics with their units, and what a change of them means.
import {
  asText,
  byteRate,
  bytes,
  compactCount,
  duration,
  type Maybe,
  type Quantity,
  rate,
  UNKNOWN,
} from "./format";

export function statisticQuantity(value: Maybe, unit: string): Quantity {
  if (value === null || value === undefined) return { value: UNKNOWN, unit: "" };
  switch (unit) {
    case "MESSAGES PER SECOND":
      return rate(value, "LCR");
    case "TRANSACTIONS PER SECOND":
      return rate(value, "txn");
    case "BYTES PER SECOND":
      return byteRate(value);
    case "PER SECOND":
      return rate(value, "");
    case "SECONDS":
      return duration(value);
    case "BYTES":
      return bytes(value);
    case "NUMBER OF MESSAGES":
      return compactCount(value, "LCR");
    case "PERCENT":
      return { value: value.toFixed(Math.abs(value) < 10 ? 1 : 0), unit: "%" };
    default:
      return compactCount(value);
  }
}

/** A difference with its sign: "+12.4 LCR/s". */
export function changeInWords(change: Maybe, unit: string): string {
  if (change === null || change === undefined) return UNKNOWN;
  if (change === 0) return "0";
  const size = asText(statisticQuantity(Math.abs(change), unit));
  return `${change > 0 ? "+" : "−"}${size}`;
}

const MORE_IS_BETTER = /RATE$|^BANDWIDTH$/;
const LESS_IS_BETTER = /^LATENCY|^TIME TO CATCH UP$|SPILL|^FLOW CONTROL$|LAG$|FALLBACK|DEADLOCK|RETRIED/;

/** Smaller changes are the noise between any two snapshots. */
const NOISE_PERCENT = 5;

/** Whether a change is for the better. Null where it is neither: a fuller queue may mean either. */
export function isBetter(name: string, change: Maybe, percent: Maybe): boolean | null {
  if (change === null || change === undefined || change === 0) return null;
  if (percent !== null && percent !== undefined && Math.abs(percent) < NOISE_PERCENT) return null;
  if (LESS_IS_BETTER.test(name)) return change < 0;
  if (MORE_IS_BETTER.test(name)) return change > 0;
  return null;
}

/** As many as one request may name. */
const STATISTICS_MAX = 40;

/** Statistics of history, in as many requests as it takes. */
export function requestsOf(statistics: string[]): string[][] {
  const count = Math.max(1, Math.ceil(statistics.length / STATISTICS_MAX));
  return Array.from({ length: count }, (_, place) =>
    statistics.slice(place * STATISTICS_MAX, (place + 1) * STATISTICS_MAX),
  );
}
