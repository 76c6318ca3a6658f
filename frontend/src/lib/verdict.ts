// One sentence about a stream: what its health says where it is not well, else what its findings say.

import type { HealthLevel, ShownState } from "./states";

interface Judged {
  path_name: string;
  verdict: string;
  bottleneck_identified: boolean;
  explanation: string;
  top_finding: string | null;
  top_finding_code: string | null;
}

interface Healthy {
  health: { level: HealthLevel; reason: string };
  destinations: readonly { state: ShownState; database: { name: string } }[];
}

/** `paths` are those of an analysis, the most pressing first; undefined while there is none. */
export function verdictOf({ health, destinations }: Healthy, paths: Judged[] | undefined): string {
  if (health.level !== "ok" || !paths || paths.length === 0) return health.reason;
  const telling =
    paths.find(({ top_finding }) => top_finding) ?? paths.find((path) => path.bottleneck_identified);
  const path = telling ?? paths.find(({ verdict }) => verdict !== "PAUSED");
  if (!path) return health.reason;
  const sentence = withFullStop(path.top_finding ?? path.explanation);
  const isOfOne = telling && paths.length > 1 && !concernsAll(path);
  return (isOfOne ? `${path.path_name}: ${sentence}` : sentence) + pausedInWords(destinations);
}

/** A finding about the source is every destination's: naming one would say that the others are spared. */
function concernsAll({ top_finding_code }: Judged): boolean {
  return top_finding_code?.startsWith("source_") ?? false;
}

/** A further sentence, with a space before it: the sentence before it is about a path that runs. */
function pausedInWords(destinations: Healthy["destinations"]): string {
  const names = destinations.filter(({ state }) => state === "PAUSED").map(({ database }) => database.name);
  if (names.length === 0) return "";
  return names.length === 1 ? ` ${names[0]} is paused.` : ` ${listed(names)} are paused.`;
}

function listed(names: string[]): string {
  return `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

function withFullStop(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
