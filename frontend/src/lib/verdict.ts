// One sentence about a stream: what its health says where it is not well, else what its findings say.

import type { HealthLevel } from "./states";

interface Judged {
  path_name: string;
  bottleneck_identified: boolean;
  explanation: string;
  top_finding: string | null;
}

interface Healthy {
  health: { level: HealthLevel; reason: string };
}

/** `paths` are those of an analysis, the most pressing first; undefined while there is none. */
export function verdictOf({ health }: Healthy, paths: Judged[] | undefined): string {
  if (health.level !== "ok" || !paths || paths.length === 0) return health.reason;
  const telling =
    paths.find(({ top_finding }) => top_finding) ?? paths.find((path) => path.bottleneck_identified);
  const path = telling ?? paths[0];
  if (!path) return health.reason;
  const sentence = withFullStop(path.top_finding ?? path.explanation);
  return telling && paths.length > 1 ? `${path.path_name}: ${sentence}` : sentence;
}

function withFullStop(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
