import { Text } from "@mantine/core";
import { IconHistory } from "@tabler/icons-react";
import { useInfiniteQuery } from "@tanstack/react-query";
import { alertHistoryQuery } from "@/api/alerts";
import { problemInWords } from "@/api/problem-in-words";
import type { Alert } from "@/api/types";
import { asText, duration, formatTime, parseTime } from "@/lib/format";
import { type Column, DataTable } from "@/ui/data-table";
import { Empty } from "@/ui/faces";
import { Panel } from "@/ui/panel";
import { QueryFaces } from "@/ui/query-faces";
import { ShowOlder } from "@/ui/show-older";
import { ToneBadge } from "@/ui/tone";
import { endInWords, severityInWords } from "./words";

/** Seconds that it fired; null when it never did. */
function fired(alert: Alert): number | null {
  const [from, to] = [parseTime(alert.fired_at), parseTime(alert.resolved_at)];
  return from === null || to === null ? null : (to - from) / 1000;
}

const columns: Column<Alert>[] = [
  {
    key: "fired",
    header: "Fired",
    sortBy: (alert) => alert.fired_at,
    cell: (alert) => <span style={{ whiteSpace: "nowrap" }}>{formatTime(alert.fired_at)}</span>,
    width: 150,
  },
  {
    key: "end",
    header: "End",
    definition:
      "When it ended. Recovered: the condition ended. Not applicable: its subject was stopped or removed, or the alert rule was switched off.",
    sortBy: (alert) => alert.resolved_at,
    cell: (alert) => (
      <>
        <ToneBadge compact state={endInWords(alert)} />
        <Text size="xs" c="dimmed" style={{ whiteSpace: "nowrap" }}>
          {formatTime(alert.resolved_at)}
        </Text>
      </>
    ),
    width: 150,
  },
  {
    key: "for",
    header: "Lasted",
    align: "right",
    sortBy: fired,
    cell: (alert) => asText(duration(fired(alert))),
  },
  {
    key: "severity",
    header: "Severity",
    sortBy: (alert) => alert.severity,
    // It is over: neither red nor yellow.
    cell: (alert) => <ToneBadge compact state={{ ...severityInWords(alert.severity), tone: "quiet" }} />,
  },
  {
    key: "subject",
    header: "Subject",
    sortBy: (alert) => alert.subject.name,
    cell: (alert) => alert.subject.name,
  },
  {
    key: "alert",
    header: "Alert",
    sortBy: (alert) => alert.title,
    cell: (alert) => (
      <>
        <Text size="sm" fw={550}>
          {alert.title}
        </Text>
        <Text size="xs" c="dimmed" style={{ overflowWrap: "anywhere" }}>
          As it was then: {alert.message}
        </Text>
      </>
    ),
    width: "40%",
  },
  { key: "by", header: "Acknowledged", cell: (alert) => alert.acknowledged_by ?? "–" },
];

export function AlertHistory() {
  const query = useInfiniteQuery(alertHistoryQuery);
  return (
    <QueryFaces query={query} inWords={problemInWords} loadingLabel="Loading the history">
      {({ pages }) => {
        const rows = pages.flatMap((page) => page.items);
        return (
          <Panel flush>
            {rows.length === 0 ? (
              <Empty icon={<IconHistory size={40} stroke={1.5} />} title="No alert has ended yet">
                An alert moves here once its cause is gone. Those that still fire are under Firing.
              </Empty>
            ) : (
              <DataTable
                label="History of alerts"
                columns={columns}
                rows={rows}
                rowKey={(alert) => alert.id}
              />
            )}
            <ShowOlder query={query} />
          </Panel>
        );
      }}
    </QueryFaces>
  );
}
