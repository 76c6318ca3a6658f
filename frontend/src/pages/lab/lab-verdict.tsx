import { Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { analysisQuery } from "@/api/advisor";
import { problemInWords } from "@/api/problem-in-words";
import type { Lab } from "@/api/types";
import { Findings } from "@/features/advisor-findings/findings";
import { PathView } from "@/features/path-view/path-view";
import { AnchorLink } from "@/ui/anchor-link";
import { Panel } from "@/ui/panel";
import { QueryFaces } from "@/ui/query-faces";

/** Short, so that the sentence follows what was done a moment ago. */
const JUDGED_SECONDS = 5;

interface LabVerdictProps {
  stream: NonNullable<Lab["stream"]>;
}

/** The advisor's verdict of the demo's stream now. */
export function LabVerdict({ stream }: LabVerdictProps) {
  const analysis = useQuery(analysisQuery({ stream_id: stream.id, window_seconds: JUDGED_SECONDS }));
  return (
    <Panel
      title="The advisor's verdict"
      aside={
        <AnchorLink to="/streams/$streamId" params={{ streamId: stream.id }} size="sm">
          {stream.name}
        </AnchorLink>
      }
    >
      <QueryFaces query={analysis} inWords={problemInWords} loadingLabel="Asking the advisor">
        {({ paths, analysis: found, findings_ranked }) => (
          <Stack gap="md">
            {paths.map((path) => (
              <PathView
                key={path.path_id}
                analysis={found}
                pathId={path.path_id}
                finding={path.top_finding}
              />
            ))}
            {findings_ranked.length > 0 && <Findings findings={findings_ranked} paths={paths} />}
            <Text size="xs" c="dimmed">
              Judged over the last {JUDGED_SECONDS} s, again every few seconds.
            </Text>
          </Stack>
        )}
      </QueryFaces>
    </Panel>
  );
}
