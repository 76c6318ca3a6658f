import { Button, Group, Select, Stack, Tabs } from "@mantine/core";
import { IconGitCompare, IconStethoscope } from "@tabler/icons-react";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useState } from "react";
import { type RunFilter, runsQuery } from "@/api/advisor";
import { problemInWords } from "@/api/problem-in-words";
import { sessionQuery } from "@/api/session";
import { overviewQuery } from "@/api/streams";
import type { RunReason } from "@/api/types";
import { RunsTable } from "@/features/advisor-runs/runs-table";
import { TakeSnapshot } from "@/features/advisor-runs/take-snapshot";
import { PolicyForm } from "@/features/advisor-schedules/policy-form";
import { Schedules } from "@/features/advisor-schedules/schedules";
import { reasonInWords } from "@/lib/advisor";
import { covers } from "@/lib/session-role";
import { Empty } from "@/ui/faces";
import { HelpLink } from "@/ui/help-link";
import { PageHeader } from "@/ui/page-header";
import { Panel } from "@/ui/panel";
import { QueryFaces } from "@/ui/query-faces";
import { RestCallButton } from "@/ui/rest-call";
import { ShowOlder } from "@/ui/show-older";
import { AdvisorCures } from "./advisor-cures";

const route = getRouteApi("/shell/advisor");

export function AdvisorPage() {
  const navigate = route.useNavigate();
  const { tab = "runs" } = route.useSearch();
  const role = useQuery(sessionQuery).data?.user.role;
  const mayAct = covers(role, "operator");
  const streams = useQuery(overviewQuery).data?.streams ?? [];
  return (
    <>
      <PageHeader
        title="Advisor"
        beside={<HelpLink help="guides/advisor" about="the advisor" />}
        description="Snapshots of every path: its bottleneck, the cause and the cure."
        actions={
          <>
            <RestCallButton
              label="REST calls"
              calls={[
                { method: "GET", path: "/api/v1/advisor/runs" },
                { method: "POST", path: "/api/v1/advisor/runs", body: { window_seconds: 30 } },
              ]}
            />
            <TakeSnapshot
              mayAct={mayAct}
              streams={streams}
              onTaken={(run) => navigate({ to: "/advisor/runs/$runId", params: { runId: String(run.id) } })}
            />
          </>
        }
      />
      <Tabs
        value={tab}
        onChange={(next) =>
          navigate({
            search: (now) => ({ ...now, tab: next === "runs" || next === null ? undefined : next }),
            replace: true,
          })
        }
      >
        <Tabs.List mb="sm">
          <Tabs.Tab value="runs">Runs</Tabs.Tab>
          <Tabs.Tab value="schedules">Schedules</Tabs.Tab>
          <Tabs.Tab value="cures">Cures</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="runs">
          <Runs streams={streams} />
        </Tabs.Panel>
        <Tabs.Panel value="schedules">
          <Stack gap="sm">
            <Schedules streams={streams} mayAct={mayAct} />
            <PolicyForm mayAct={covers(role, "admin")} />
          </Stack>
        </Tabs.Panel>
        <Tabs.Panel value="cures">
          <AdvisorCures mayAct={mayAct} />
        </Tabs.Panel>
      </Tabs>
    </>
  );
}

const REASONS: RunReason[] = ["on_demand", "schedule", "alert", "before_cure", "after_cure"];

function Runs({ streams }: { streams: { id: string; name: string }[] }) {
  const navigate = route.useNavigate();
  const { stream, reason } = route.useSearch();
  const [chosen, setChosen] = useState<number[]>([]);
  const filter: RunFilter = { stream_id: stream, reason: REASONS.find((known) => known === reason) };
  const query = useInfiniteQuery(runsQuery(filter));
  const filtered = Boolean(stream || reason);
  const [before, after] = [...chosen].sort((a, b) => a - b);
  return (
    <Stack gap="sm">
      <Group justify="space-between">
        <Group gap="xs">
          <Select
            aria-label="Runs of the stream"
            placeholder="All streams"
            clearable
            searchable
            data={streams.map(({ id, name }) => ({ value: id, label: name }))}
            value={stream ?? null}
            onChange={(next) =>
              navigate({ search: (now) => ({ ...now, stream: next ?? undefined }), replace: true })
            }
            w={220}
          />
          <Select
            aria-label="Runs with the reason"
            placeholder="All reasons"
            clearable
            data={REASONS.map((known) => ({ value: known, label: reasonInWords(known) }))}
            value={reason ?? null}
            onChange={(next) =>
              navigate({ search: (now) => ({ ...now, reason: next ?? undefined }), replace: true })
            }
            w={160}
          />
        </Group>
        <Button
          variant="default"
          leftSection={<IconGitCompare size={14} aria-hidden />}
          disabled={before === undefined || after === undefined}
          title="Select two runs to compare them"
          onClick={() => navigate({ to: "/advisor/compare", search: { before, after } })}
        >
          Compare the selected runs
        </Button>
      </Group>
      <QueryFaces query={query} inWords={problemInWords} loadingLabel="Loading runs">
        {({ pages }) => {
          const runs = pages.flatMap((page) => page.items);
          return (
            <Panel flush>
              {runs.length === 0 ? (
                <Empty
                  icon={<IconStethoscope size={40} stroke={1.5} />}
                  title={filtered ? "No such runs" : "No runs yet"}
                >
                  {filtered
                    ? "Remove a filter to see other runs."
                    : "Take a snapshot to analyse the last half minute of every path and keep the result."}
                </Empty>
              ) : (
                <RunsTable runs={runs} chosen={chosen} onChoose={setChosen} />
              )}
              <ShowOlder query={query} />
            </Panel>
          );
        }}
      </QueryFaces>
    </Stack>
  );
}
