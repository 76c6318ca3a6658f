import { Button } from "@mantine/core";
import { IconBellOff } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { alertRulesQuery, silencesQuery, useEndSilence } from "@/api/alerts";
import { problemInWords } from "@/api/problem-in-words";
import type { AlertSilence } from "@/api/types";
import { formatTime } from "@/lib/format";
import { type Column, DataTable } from "@/ui/data-table";
import { Empty } from "@/ui/faces";
import { Panel } from "@/ui/panel";
import { ProblemAlert } from "@/ui/problem-alert";
import { QueryFaces } from "@/ui/query-faces";
import { SilenceDialog } from "./silence-dialog";

export function Silences({ mayAct }: { mayAct: boolean }) {
  const query = useQuery(silencesQuery);
  const titles = new Map((useQuery(alertRulesQuery).data ?? []).map(({ id, title }) => [id, title]));
  const end = useEndSilence();
  const [adding, setAdding] = useState(false);
  const add = mayAct && <Button onClick={() => setAdding(true)}>Add silence</Button>;
  const columns: Column<AlertSilence>[] = [
    {
      key: "rule",
      header: "Alert rule",
      cell: ({ rule }) => (rule === null ? "Every alert rule" : (titles.get(rule) ?? rule)),
    },
    { key: "stream", header: "Stream", cell: ({ stream_name }) => stream_name ?? "Everything" },
    { key: "until", header: "Until", sortBy: ({ until }) => until, cell: ({ until }) => formatTime(until) },
    { key: "reason", header: "Reason", cell: ({ reason }) => reason || "–" },
    { key: "by", header: "By", cell: ({ created_by }) => created_by },
  ];
  if (mayAct)
    columns.push({
      key: "actions",
      header: "Actions",
      cell: ({ id, rule, stream_name }) => (
        <Button
          variant="default"
          loading={end.isPending && end.variables === id}
          aria-label={`End the silence of ${rule ?? "every alert rule"}, ${stream_name ?? "everything"}`}
          onClick={() => end.mutate(id)}
        >
          End now
        </Button>
      ),
    });
  return (
    <Panel flush title="Silences" aside={add}>
      {end.isError && <ProblemAlert problem={problemInWords(end.error)} />}
      <QueryFaces query={query} inWords={problemInWords} loadingLabel="Loading silences">
        {(rows) =>
          rows.length === 0 ? (
            <Empty icon={<IconBellOff size={36} stroke={1.5} />} title="Nothing is silenced">
              A silence holds back notices while you work on something. The alerts still appear here, and
              notices of those that fire when the silence ends are sent then.
            </Empty>
          ) : (
            <DataTable label="Silences" columns={columns} rows={rows} rowKey={({ id }) => id} />
          )
        }
      </QueryFaces>
      <SilenceDialog opened={adding} rule={null} streamId={null} onClose={() => setAdding(false)} />
    </Panel>
  );
}
