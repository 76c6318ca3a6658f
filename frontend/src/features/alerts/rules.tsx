import { Button, Stack, Switch, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { alertRulesQuery, useSetRule } from "@/api/alerts";
import { problemInWords } from "@/api/problem-in-words";
import type { AlertRule } from "@/api/types";
import { asText, duration } from "@/lib/format";
import { type Column, DataTable } from "@/ui/data-table";
import { Panel } from "@/ui/panel";
import { ProblemAlert } from "@/ui/problem-alert";
import { QueryFaces } from "@/ui/query-faces";
import { ToneBadge } from "@/ui/tone";
import { RuleDrawer } from "./rule-drawer";
import { severityInWords, thresholdsInWords } from "./words";

export function Rules({ mayAct }: { mayAct: boolean }) {
  const query = useQuery(alertRulesQuery);
  const set = useSetRule();
  const [editing, setEditing] = useState<AlertRule["id"] | null>(null);
  const edited = query.data?.find(({ id }) => id === editing) ?? null;
  const columns: Column<AlertRule>[] = [
    {
      key: "on",
      header: "On",
      cell: (rule) => (
        <Switch
          aria-label={`${rule.title} is on`}
          checked={rule.effective.enabled}
          disabled={!mayAct || set.isPending}
          onChange={(event) =>
            set.mutate({
              rule,
              streamId: null,
              body: { ...rule.settings, enabled: event.currentTarget.checked ? null : false },
            })
          }
        />
      ),
    },
    {
      key: "rule",
      header: "Alert rule",
      sortBy: (rule) => rule.title,
      cell: (rule) => (
        <>
          <Text size="sm" fw={550}>
            {rule.title}
          </Text>
          <Text size="xs" c="dimmed">
            {rule.meaning}
          </Text>
        </>
      ),
      width: "42%",
    },
    {
      key: "severity",
      header: "Severity",
      sortBy: (rule) => rule.effective.severity,
      cell: (rule) => <ToneBadge compact state={severityInWords(rule.effective.severity)} />,
    },
    {
      key: "fires",
      header: "Fires",
      cell: (rule) => (
        <Stack gap={0}>
          <Text size="sm">{thresholdsInWords(rule, rule.effective) || "On its condition alone"}</Text>
          <Text size="xs" c="dimmed">
            {rule.effective.hold_seconds > 0
              ? `after ${asText(duration(rule.effective.hold_seconds))}`
              : "at once"}
          </Text>
        </Stack>
      ),
    },
    {
      key: "streams",
      header: "Streams with own settings",
      cell: (rule) =>
        rule.streams
          .map(({ stream_name, effective }) => `${stream_name}${effective.enabled ? "" : " (off)"}`)
          .join(", ") || "–",
    },
  ];
  if (mayAct)
    columns.push({
      key: "actions",
      header: "Actions",
      cell: (rule) => (
        <Button variant="default" aria-label={`Edit ${rule.title}`} onClick={() => setEditing(rule.id)}>
          Edit…
        </Button>
      ),
    });
  return (
    <Panel flush title="Alert rules">
      {set.isError && <ProblemAlert problem={problemInWords(set.error)} />}
      <QueryFaces query={query} inWords={problemInWords} loadingLabel="Loading alert rules">
        {(rules) => <DataTable label="Alert rules" columns={columns} rows={rules} rowKey={({ id }) => id} />}
      </QueryFaces>
      <RuleDrawer rule={edited} onClose={() => setEditing(null)} />
    </Panel>
  );
}
