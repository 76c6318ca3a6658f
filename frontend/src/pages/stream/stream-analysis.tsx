import { Stack } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { type AnalysisScope, analysisQuery } from "@/api/advisor";
import { problemInWords } from "@/api/problem-in-words";
import { Findings } from "@/features/advisor-findings/findings";
import { PathChoice } from "@/features/path-view/path-choice";
import { PathView } from "@/features/path-view/path-view";
import { Empty } from "@/ui/faces";
import { Panel } from "@/ui/panel";
import { ProblemAlert } from "@/ui/problem-alert";
import { QueryFaces } from "@/ui/query-faces";

interface StreamAnalysisProps {
  scope: AnalysisScope;
  title: string;
  aside?: ReactNode;
}

/** The analysis of this stream's paths that is not kept: of this moment, or of a range of the past. */
export function StreamAnalysis({ scope, title, aside }: StreamAnalysisProps) {
  const query = useQuery(analysisQuery(scope));
  const [chosen, setChosen] = useState<string>();
  return (
    <QueryFaces query={query} inWords={problemInWords} rows={6} loadingLabel="Loading the analysis">
      {({ analysis, paths, findings_ranked: findings, live }) => {
        const path = paths.find(({ path_id }) => path_id === chosen) ?? paths[0];
        return (
          <Stack gap="sm">
            {!live && (
              <ProblemAlert
                tone="warning"
                problem={{
                  title: "Live samples are missing",
                  message: "Redis cannot be reached: the path is shown as far as it is known.",
                  cure: "Check that Redis runs (make status).",
                }}
              />
            )}
            {paths.length > 1 && <PathChoice paths={paths} chosen={path?.path_id} onChoose={setChosen} />}
            <Panel title={title} aside={aside}>
              {path && analysis.samples > 0 ? (
                <PathView analysis={analysis} pathId={path.path_id} finding={path.top_finding} />
              ) : (
                <Empty title="No samples">
                  Nothing was recorded in this range: the stream did not run, or the engine did not answer.
                </Empty>
              )}
            </Panel>
            {path && findings.length > 0 && (
              <Panel title="Findings">
                <Findings findings={findings.filter(({ path_id }) => path_id === path.path_id)} />
              </Panel>
            )}
          </Stack>
        );
      }}
    </QueryFaces>
  );
}
