// Where on a stream's page the error of a destination is shown.
import type { Finding, Stream, StreamDestination, Verdict } from "@/api/types";
import { haveOneCause } from "@/lib/causes";
import { isEngineError } from "@/lib/engine-errors";

/** The id of the element that has them all. */
export const ERRORS_ID = "errors-with-cures";

/** Its tables' troubles say the same, with their cures. */
function isOfTable({ error, tables }: StreamDestination): boolean {
  return isEngineError(error, "table_trouble") && tables.some(({ trouble }) => trouble !== null);
}

/**
 * The place at the top of the page that shows a destination's error: its table's trouble, the stream's error, or an
 * alert for the destinations of that cause. Null: it has no error.
 */
export function errorPlace(
  stream: Stream,
  destination: StreamDestination,
): "table" | "stream" | "alert" | null {
  if (!destination.error) return null;
  if (isOfTable(destination)) return "table";
  return haveOneCause(stream.error, destination.error) ? "stream" : "alert";
}

const OF_ERRORS: readonly Verdict[] = [
  "ABORTED",
  "DESTINATION DOWN",
  "SOURCE DOWN",
  "LINK DOWN",
  "ENGINE TROUBLE",
];

/** An error that the top of the page shows, in the words of the analysis. */
export function repeatsError(verdict: Verdict, stream: Stream, destination: StreamDestination): boolean {
  return OF_ERRORS.includes(verdict) && errorPlace(stream, destination) !== null;
}

const CODES: readonly Finding["code"][] = [
  "aborted",
  "destination_down",
  "source_down",
  "link_down",
  "engine_trouble",
];

/** As a finding; one with SQL has a cure that the head lacks. */
export function findingRepeatsError({ code, cures }: Finding): boolean {
  return CODES.includes(code) && !cures.some(({ sql }) => sql);
}
