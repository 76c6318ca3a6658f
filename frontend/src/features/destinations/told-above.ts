// Where on a stream's page the error of a destination is told.
import type { Stream, StreamDestination } from "@/api/types";
import { haveOneCause } from "@/lib/causes";
import { isEngineError } from "@/lib/engine-errors";

/** Its tables' troubles say the same, with their cures. */
function isOfTable({ error, tables }: StreamDestination): boolean {
  return isEngineError(error, "table_trouble") && tables.some(({ trouble }) => trouble !== null);
}

/**
 * The place at the head of the page that tells a destination's error: its table's trouble, the stream's error, or one
 * alert for all destinations of that cause. Null: there is none.
 */
export function toldAbove(
  stream: Stream,
  destination: StreamDestination,
): "table" | "stream" | "shared" | null {
  const { id, error } = destination;
  if (!error) return null;
  if (isOfTable(destination)) return "table";
  if (haveOneCause(stream.error, error)) return "stream";
  const others = stream.destinations.filter((other) => other.id !== id && !isOfTable(other));
  return others.some((other) => haveOneCause(other.error, error)) ? "shared" : null;
}
