import { Box, Group, Text } from "@mantine/core";
import { IconListCheck } from "@tabler/icons-react";
import { useInfiniteQuery } from "@tanstack/react-query";
import { operationsQuery } from "@/api/operations";
import { problemInWords } from "@/api/problem-in-words";
import type { Operation } from "@/api/types";
import { asText, doneOf, duration, formatTime, parseTime, percent } from "@/lib/format";
import { operationTitle } from "@/lib/operations";
import { AnchorLink } from "@/ui/anchor-link";
import { type Column, DataTable } from "@/ui/data-table";
import { Empty } from "@/ui/faces";
import { Meter } from "@/ui/meter";
import { PageHeader } from "@/ui/page-header";
import { Panel } from "@/ui/panel";
import { Quantity } from "@/ui/quantity";
import { QueryFaces } from "@/ui/query-faces";
import { RestCallButton } from "@/ui/rest-call";
import { ShowOlder } from "@/ui/show-older";
import { StateBadge } from "@/ui/tone";

const columns: Column<Operation>[] = [
  {
    key: "kind",
    header: "Operation",
    sortBy: (operation) => operation.kind,
    cell: operationTitle,
  },
  {
    key: "target",
    header: "Target",
    sortBy: (operation) => operation.target.name,
    cell: ({ target }) =>
      target.type === "stream" ? (
        <AnchorLink to="/streams/$streamId" params={{ streamId: target.id }} size="sm">
          {target.name}
        </AnchorLink>
      ) : (
        target.name
      ),
  },
  {
    key: "state",
    header: "State",
    sortBy: (operation) => operation.state,
    cell: (operation) => <StateBadge state={operation.state} compact />,
  },
  {
    key: "progress",
    header: "Progress",
    width: 220,
    cell: (operation) => <Progress operation={operation} />,
  },
  {
    key: "by",
    header: "Requested by",
    sortBy: (operation) => operation.requested_by,
    cell: (operation) => operation.requested_by,
  },
  {
    key: "at",
    header: "Requested",
    sortBy: (operation) => operation.created_at,
    cell: (operation) => formatTime(operation.created_at),
  },
  {
    key: "took",
    header: "Took",
    definition:
      "From the request to the engine until the control plane first saw it done. The engine is polled once a second, so this may be up to a second too long.",
    align: "right",
    cell: (operation) => <Quantity quantity={duration(took(operation))} />,
  },
];

function took({ started_at, finished_at }: Operation): number | null {
  const start = parseTime(started_at);
  const end = parseTime(finished_at);
  return start === null || end === null ? null : (end - start) / 1000;
}

function Progress({ operation }: { operation: Operation }) {
  const { progress, error, state } = operation;
  if (error) {
    return (
      <Box maw={420} py={4}>
        <Text
          size="sm"
          fw={550}
          style={{ color: state === "succeeded" ? "var(--tone-warning)" : "var(--tone-bad)" }}
        >
          {error.title}
        </Text>
        <Text size="xs">{error.message}</Text>
        {error.cure && (
          <Text size="xs">
            <strong>Cure: </strong>
            {error.cure}
          </Text>
        )}
      </Box>
    );
  }
  const share = progress.total ? progress.done / progress.total : state === "succeeded" ? 1 : null;
  const text = progress.total ? doneOf(progress.done, progress.total, progress.unit) : asText(percent(share));
  return (
    <Box maw={420} py={4}>
      <Group gap={8} wrap="nowrap">
        <Meter
          role="progressbar"
          label={`Progress of ${operationTitle(operation)} ${operation.target.name}`}
          share={share}
          text={text}
          tone={state === "succeeded" ? "good" : "busy"}
        />
        <Text size="xs" className="numeric" style={{ whiteSpace: "nowrap" }}>
          {text}
        </Text>
      </Group>
      {operation.waiting_for && <Text size="xs">Waits for: {operation.waiting_for}</Text>}
    </Box>
  );
}

export function OperationsPage() {
  const query = useInfiniteQuery(operationsQuery);
  return (
    <>
      <PageHeader
        title="Operations"
        description="Long-running requests with their progress, newest first."
        actions={<RestCallButton calls={[{ method: "GET", path: "/api/v1/operations" }]} />}
      />
      <QueryFaces query={query} inWords={problemInWords} loadingLabel="Loading operations">
        {({ pages }) => {
          const rows = pages.flatMap((page) => page.items);
          return (
            <Panel flush>
              {rows.length === 0 ? (
                <Empty icon={<IconListCheck size={40} stroke={1.5} />} title="No operations yet">
                  Creating, starting, stopping and deleting a stream each add one here.
                </Empty>
              ) : (
                <DataTable
                  label="Operations"
                  columns={columns}
                  rows={rows}
                  rowKey={(operation) => operation.id}
                />
              )}
              <ShowOlder query={query} />
            </Panel>
          );
        }}
      </QueryFaces>
    </>
  );
}
