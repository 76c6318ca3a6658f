// One sentence about a stream: what its findings say, after what its health says where it is not well.

import type { components } from "@/api/generated/schema";
import { asText, duration } from "./format";
import { firstSentence, listed, withFullStop } from "./sentences";
import type { HealthLevel, ObservedStatus, ShownState } from "./states";

type FindingCode = components["schemas"]["FindingCode"];

interface Judged {
  path_name: string;
  verdict: string;
  bottleneck_identified: boolean;
  explanation: string;
  top_finding: string | null;
  top_finding_code: FindingCode | null;
}

interface Failure {
  title: string;
  side: string | null;
}

interface Healthy {
  health: { level: HealthLevel; reason: string };
  status: ObservedStatus;
  desired_status: "ENABLED" | "DISABLED" | "DROPPED";
  source: { name: string };
  error: Failure | null;
  slot: { wal_status: string | null } | null;
  destinations: readonly {
    state: ShownState;
    database: { name: string };
    error: Failure | null;
    lag: { bytes: number | null; age_seconds: number | null };
    tables: readonly { trouble: { cure: string } | null }[];
  }[];
}

/** Findings about what health tells already, and about a source that merely rests. */
const ADD_NOTHING: readonly (FindingCode | null)[] = [
  "aborted",
  "destination_down",
  "source_down",
  "link_down",
  "engine_down",
  "engine_trouble",
  "parking",
  "full_backlog",
  "source_idle",
];

/** `paths` are those of an analysis, the most pressing first; undefined while there is none. */
export function verdictOf(stream: Healthy, paths: Judged[] = []): string {
  const { health, destinations } = stream;
  const resting = retryInWords(stream) ?? restingInWords(stream);
  // Findings about a stream that rests are of the time before that.
  if (resting && stream.status !== "ENABLED") return resting;
  if (health.level !== "ok") {
    const reason = resting ?? withoutRepetition(health.reason, destinations);
    const cause = paths.find(
      ({ top_finding, top_finding_code }) => top_finding && !ADD_NOTHING.includes(top_finding_code),
    );
    return cause ? withFinding(reason, cause, paths.length) : reason;
  }
  const telling =
    paths.find(({ top_finding }) => top_finding) ?? paths.find((path) => path.bottleneck_identified);
  const path = telling ?? paths.find(({ verdict }) => verdict !== "PAUSED");
  if (!path) return health.reason;
  const sentence = withFullStop(path.top_finding ?? path.explanation);
  const isOfOne = telling && paths.length > 1 && !concernsAll(path);
  return (isOfOne ? `${path.path_name}: ${sentence}` : sentence) + pausedInWords(destinations);
}

/** Neither hides the other: what is not well, and then what was found. */
function withFinding(reason: string, path: Judged, pathCount: number): string {
  const first = firstSentence(reason);
  // A cure that health guesses at gives way to what was found.
  const kept = / (Also behind: .*|And \d+ more\.)$/.exec(reason.slice(first.length))?.[0] ?? "";
  const head = first.replace(/[.!?]$/, "");
  const where = pathCount > 1 && !concernsAll(path) ? ` (${path.path_name})` : "";
  const finding = path.top_finding?.replace(/\.$/, "") ?? "";
  return `${head}${/[:;]/.test(head) ? ";" : ":"} ${finding}${where}.${kept}`;
}

/**
 * Of a stream that does not run or has an error; null of others. The error with its cure stands in the alert below, and
 * what waits at the source in the figures.
 */
function restingInWords({ health, status, desired_status, error, slot }: Healthy): string | null {
  if (desired_status === "DROPPED" || status === "UNKNOWN") return null;
  if (status === "ENABLED") return error ? firstSentence(health.reason) : null;
  if (slot?.wal_status === "lost") return "Its slot is lost: it cannot go on and has to be created again.";
  return status === "ABORTED"
    ? "An error has stopped it: nothing is applied until that is cured."
    : firstSentence(health.reason);
}

/**
 * Of a stream or destinations that are tried again: which database, and what is wrong with it; null of others. The API
 * does not say since when it is tried: the age of what waits for one destination is about as long.
 */
function retryInWords({ health, status, source, error, destinations }: Healthy): string | null {
  const found = /^The engine is retrying(?: (.+?))?(; .+)?\.$/.exec(firstSentence(health.reason));
  const failing = destinations.filter((own) => own.error && health.reason.includes(own.error.title));
  const failure = error ?? failing[0]?.error;
  if (!found || !failure || status !== "ENABLED") return null;
  const [, named, goOn = ""] = found;
  const name = named ?? (failure.side === "source" ? source.name : ofOnly(failure, destinations));
  const [only] = failing.filter(({ database }) => database.name === name);
  const minutes = only?.lag.bytes ? Math.floor((only.lag.age_seconds ?? 0) / 60) : 0;
  const behind = minutes > 0 ? `, ${asText(duration(minutes * 60))} behind` : "";
  return `Retrying${name ? ` ${name}` : ""}${behind}: ${failure.title.replace(/\.$/, "")}${goOn}.${andMore(health.reason)}`;
}

/** The name of a stream's only destination where the error is there. */
function ofOnly({ side }: Failure, destinations: Healthy["destinations"]): string | undefined {
  return side === "destination" && destinations.length === 1 ? destinations[0]?.database.name : undefined;
}

/** The end of a reason that tells the first of several troubles. */
function andMore(reason: string): string {
  return / And \d+ more\.$/.exec(reason)?.[0] ?? "";
}

/** Alerts below tell a destination's error, and a table's cure. */
function withoutRepetition(reason: string, destinations: Healthy["destinations"]): string {
  if (destinations.some(({ error }) => error && reason.includes(error.title)))
    return firstSentence(reason) + andMore(reason);
  const cures = destinations.flatMap(({ tables }) => tables.flatMap(({ trouble }) => trouble?.cure ?? []));
  const repeated = cures.find((cure) => reason.includes(` ${cure}`));
  return repeated ? reason.replace(` ${repeated}`, "") : reason;
}

/** Findings about the source are every destination's: naming one would say that the others are spared. */
const CONCERN_ALL: readonly (FindingCode | null)[] = ["source_down", "source_idle"];

function concernsAll({ top_finding_code }: Judged): boolean {
  return CONCERN_ALL.includes(top_finding_code);
}

/** A further sentence, with a space before it: the sentence before it is about a path that runs. */
function pausedInWords(destinations: Healthy["destinations"]): string {
  const names = destinations.filter(({ state }) => state === "PAUSED").map(({ database }) => database.name);
  if (names.length === 0) return "";
  return names.length === 1 ? ` ${names[0]} is paused.` : ` ${listed(names)} are paused.`;
}
