import { Button, Group, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { runQuery } from "@/api/advisor";
import { curesQuery } from "@/api/advisor-cures";
import { ProblemError } from "@/api/problem";
import { problemInWords } from "@/api/problem-in-words";
import { sessionQuery } from "@/api/session";
import type { AdvisorRun, AppliedCure, RunPath } from "@/api/types";
import { CureActions } from "@/features/advisor-cures/cure-actions";
import { EvidenceSpan } from "@/features/advisor-findings/evidence-chart";
import { Findings } from "@/features/advisor-findings/findings";
import { RunActions } from "@/features/advisor-runs/run-actions";
import { runTitle, worstPaths } from "@/features/advisor-runs/runs";
import { AdvisorTables } from "@/features/advisor-tables/advisor-tables";
import { PathChoice } from "@/features/path-view/path-choice";
import { PathView } from "@/features/path-view/path-view";
import { CURE_AT_WORK, reasonInWords } from "@/lib/advisor";
import { asText, counted, duration, formatTime } from "@/lib/format";
import { covers } from "@/lib/session-role";
import { AnchorLink } from "@/ui/anchor-link";
import { Empty } from "@/ui/faces";
import { PageHeader } from "@/ui/page-header";
import { Panel } from "@/ui/panel";
import { QueryFaces } from "@/ui/query-faces";
import { RestCallButton } from "@/ui/rest-call";
import { RunFacts } from "./run-facts";

const route = getRouteApi("/shell/advisor/runs/$runId");

export function RunPage() {
  const { runId } = route.useParams();
  const query = useQuery(runQuery(Number(runId)));
  if (query.error instanceof ProblemError && query.error.problem.status === 404) {
    return (
      <Empty
        title="This run does not exist"
        actions={
          <Button component={Link} to="/advisor">
            All runs
          </Button>
        }
      >
        It was deleted or removed by retention, or the address is mistyped.
      </Empty>
    );
  }
  return (
    <QueryFaces query={query} inWords={problemInWords} rows={8} loadingLabel="Loading the run">
      {(run) => <RunView run={run} />}
    </QueryFaces>
  );
}

function RunView({ run }: { run: AdvisorRun }) {
  const navigate = route.useNavigate();
  const search = route.useSearch();
  const mayAct = covers(useQuery(sessionQuery).data?.user.role, "operator");
  const paths = useMemo(() => worstPaths(run.paths), [run.paths]);
  const path = paths.find((analysed) => analysed.path_id === search.path) ?? paths[0];
  const span = useMemo(() => spanOf(run), [run]);
  const cures = useQuery(curesQuery(path?.stream_id)).data ?? [];
  return (
    <>
      <PageHeader
        title={runTitle(run)}
        description={<Description run={run} />}
        actions={
          <>
            <RestCallButton calls={[{ method: "GET", path: `/api/v1/advisor/runs/${run.id}` }]} />
            <RunActions run={run} mayAct={mayAct} onDeleted={() => navigate({ to: "/advisor" })} />
          </>
        }
      />
      <Stack gap="sm">
        {paths.length > 1 && (
          <PathChoice
            paths={paths}
            chosen={path?.path_id}
            onChoose={(next) => navigate({ search: (now) => ({ ...now, path: next }), replace: true })}
          />
        )}
        {path ? (
          <>
            <Panel title={path.path_name} aside={<StreamLink path={path} />}>
              <PathView
                key={path.path_id}
                analysis={run.analysis}
                pathId={path.path_id}
                finding={path.top_finding}
              />
            </Panel>
            <Panel title="Findings">
              <EvidenceSpan value={span}>
                <Findings
                  findings={run.findings_ranked.filter(({ path_id }) => path_id === path.path_id)}
                  cureActions={(finding, cure, index) => (
                    <CureActions
                      runId={run.id}
                      finding={finding}
                      cure={cure}
                      index={index}
                      applied={cures.filter((cure) => cure.finding.id === finding.id && concerns(cure, run))}
                      mayAct={mayAct}
                    />
                  )}
                />
              </EvidenceSpan>
            </Panel>
          </>
        ) : (
          <Panel>
            <Empty title="No path was analysed">
              There was no stream when the snapshot was taken, or none goes through the chosen component.
            </Empty>
          </Panel>
        )}
        <RunFacts sheets={run.fact_sheets} />
        <Panel title="Tables" flush>
          <AdvisorTables analysis={run.analysis} />
        </Panel>
      </Stack>
    </>
  );
}

/** A cure from before the run has not kept its trouble away. */
function concerns(cure: AppliedCure, run: AdvisorRun): boolean {
  return Date.parse(cure.created_at) >= Date.parse(run.at) || CURE_AT_WORK.includes(cure.state);
}

function StreamLink({ path }: { path: RunPath }) {
  return (
    <Group gap="sm" wrap="nowrap">
      <Text size="sm" c="dimmed">
        {path.source_db} → {path.destination_db}
      </Text>
      <AnchorLink to="/streams/$streamId" params={{ streamId: path.stream_id }} size="sm">
        Open the stream
      </AnchorLink>
    </Group>
  );
}

function Description({ run }: { run: AdvisorRun }) {
  const span = spanOf(run);
  const facts = [
    formatTime(run.at),
    `${reasonInWords(run.reason)}${run.detail ? `: ${run.detail}` : ""}`,
    `by ${run.requested_by}`,
    span && `${counted(run.samples, "sample")} over ${asText(duration((span.until - span.from) / 1000))}`,
    run.kept && "kept",
  ];
  return (
    <Stack gap={2}>
      <Group gap={6}>
        <AnchorLink to="/advisor" size="sm">
          Advisor
        </AnchorLink>
        <Text size="sm" c="dimmed">
          · {facts.filter(Boolean).join(" · ")}
        </Text>
      </Group>
      {run.note && <Text size="sm">{run.note}</Text>}
    </Stack>
  );
}

function spanOf({ begin_at, end_at }: AdvisorRun): { from: number; until: number } | null {
  return begin_at && end_at ? { from: Date.parse(begin_at), until: Date.parse(end_at) } : null;
}
