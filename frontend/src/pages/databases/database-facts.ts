import type { DatabaseRole } from "@/api/databases";
import type { Alert, Database } from "@/api/types";
import { type StateInWords, sentenceCase } from "@/lib/states";

export function testInWords({
  tested_at,
  test_code,
}: Pick<Database, "tested_at" | "test_code">): StateInWords {
  if (test_code !== null)
    return { label: sentenceCase(test_code), tone: "bad", definition: "The last test failed." };
  if (tested_at === null)
    return { label: "Not tested", tone: "quiet", definition: "No connection test has been run yet." };
  return { label: "Connected", tone: "good", definition: "The last test succeeded." };
}

/** Databases that an engine cannot reach now, by their names, with the alert's words: a test may be from before. */
export function unreachable(alerts: Alert[]): Map<unknown, StateInWords> {
  const firing = alerts.filter(
    ({ rule, state, over_since }) =>
      rule === "database_unreachable" && state === "firing" && over_since === null,
  );
  return new Map(
    firing.map(({ evidence, message }) => [
      evidence.database,
      { label: "Unreachable now", tone: "bad", definition: message },
    ]),
  );
}

/** The version that the last test found; without one, why there is none. */
export function versionInWords({ version, tested_at }: Pick<Database, "version" | "tested_at">): string {
  if (version !== null) return version;
  return tested_at === null ? "not tested yet" : "unknown: the test failed";
}

/** As what it is checked at first: as a source, unless it only serves as a destination. */
export function usualRole({
  source_of,
  destination_of,
}: Pick<Database, "source_of" | "destination_of">): DatabaseRole {
  return source_of.length === 0 && destination_of.length > 0 ? "destination" : "source";
}

const streams = (count: number) => `${count} ${count === 1 ? "stream" : "streams"}`;

export function usedBy({
  source_of,
  destination_of,
}: Pick<Database, "source_of" | "destination_of">): string {
  const parts: string[] = [];
  if (source_of.length > 0) parts.push(`source of ${streams(source_of.length)}`);
  if (destination_of.length > 0) parts.push(`destination of ${streams(destination_of.length)}`);
  return parts.join(", ") || "–";
}
