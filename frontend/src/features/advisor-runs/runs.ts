import type { RunPath, RunSummary } from "@/api/types";

export function runTitle(run: Pick<RunSummary, "id" | "name">): string {
  return run.name ?? `Run ${run.id}`;
}

const ORDER: RunPath["verdict"][] = [
  "ABORTED",
  "SOURCE DOWN",
  "DESTINATION DOWN",
  "LINK DOWN",
  "ENGINE DOWN",
  "ENGINE TROUBLE",
  "WAITING",
  "HELD UP",
  "BOTTLENECK",
  "UNKNOWN",
];

function place(path: RunPath): number {
  const found = ORDER.indexOf(path.verdict);
  return found < 0 ? ORDER.length : found;
}

/** The paths to look at first: those that do not work, then those with a bottleneck. */
export function worstPaths(paths: RunPath[], count = paths.length): RunPath[] {
  return [...paths].sort((a, b) => place(a) - place(b)).slice(0, count);
}
