// The live analysis of a stream's cards: of one destination's, or of those that all destinations share.
import type { LiveAnalysis } from "@/api/types";
import { type PathModel, pathModel, type Stage } from "@/features/path-view/path-model";

export interface LivePath {
  pathId: string;
  destinationId: string;
  model: PathModel;
  /** Title of its most pressing finding. */
  finding: string | null;
}

export function livePaths({ analysis, paths }: LiveAnalysis): LivePath[] {
  if (analysis.samples === 0) return [];
  return analysis.paths.map(({ path_id, destination_id }) => ({
    pathId: path_id,
    destinationId: destination_id,
    model: pathModel(analysis, path_id),
    finding: paths.find((path) => path.path_id === path_id)?.top_finding ?? null,
  }));
}

/**
 * The stage behind a card. The shared stages are in each path: one that limits or is held back in any of them is shown
 * so.
 */
export function stageOfCard(paths: LivePath[], destinationId: string | null, title: string): Stage | null {
  const stages = paths
    .filter((path) => destinationId === null || path.destinationId === destinationId)
    .flatMap(({ model }) => model.stages.filter((stage) => stage.title === title));
  return (
    stages.find(({ bottleneck }) => bottleneck) ??
    stages.find(({ heldBackBy }) => heldBackBy) ??
    stages[0] ??
    null
  );
}
