import { Box, Group, Text } from "@mantine/core";
import { IconListCheck } from "@tabler/icons-react";
import { useInfiniteQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { operationsQuery } from "@/api/operations";
import { problemInWords } from "@/api/problem-in-words";
import type { Operation } from "@/api/types";
import { asText, doneOf, duration, formatTime, parseTime, percent, rows } from "@/lib/format";
import { isUnfinished, operationTarget, operationTitle } from "@/lib/operations";
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
import { filterOf, OperationFilters } from "./operation-filters";

const route = getRouteApi("/shell/operations");

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
    definition: "The stream; and its destination, where only one of them is concerned.",
    sortBy: operationTarget,
    cell: (operation) =>
      operation.target.type === "stream" ? (
        <AnchorLink to="/streams/$streamId" params={{ streamId: operation.target.id }} size="sm">
          {operationTarget(operation)}
        </AnchorLink>
      ) : (
        operation.target.name
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
    cell: (operation) => <Took operation={operation} />,
  },
];

function took({ started_at, finished_at }: Operation): number | null {
  const start = parseTime(started_at);
  const end = parseTime(finished_at);
  return start === null || end === null ? null : (end - start) / 1000;
}

/** How long it took; of one at work, how long it has been so far. */
function Took({ operation }: { operation: Operation }) {
  const started = parseTime(operation.started_at);
  if (!isUnfinished(operation) || started === null) return <Quantity quantity={duration(took(operation))} />;
  return (
    <>
      <Quantity quantity={duration(Math.max(0, Date.now() - started) / 1000)} />
      <Text size="xs" c="dimmed">
        so far
      </Text>
    </>
  );
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
        <Text size="xs">{error.detail ?? error.message}</Text>
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
  const counted =
    progress.unit === "rows" && progress.done > 0 ? asText(rows(progress.done)) : asText(percent(share));
  const text = progress.total ? doneOf(progress.done, progress.total, progress.unit) : counted;
  return (
    <Box maw={420} py={4}>
      <Group gap={8} wrap="nowrap">
        <Box w={110} style={{ flex: "none" }}>
          <Meter
            role="progressbar"
            label={`Progress of ${operationTitle(operation)} ${operationTarget(operation)}`}
            share={share}
            text={text}
            tone={state === "succeeded" ? "good" : "busy"}
          />
        </Box>
        <Text size="xs" className="numeric" style={{ whiteSpace: "nowrap" }}>
          {text}
        </Text>
      </Group>
      {operation.waiting_for && <Text size="xs">Waits for: {operation.waiting_for}</Text>}
    </Box>
  );
}

export function OperationsPage() {
  const search = route.useSearch();
  const filter = filterOf(search);
  const query = useInfiniteQuery(operationsQuery(filter));
  const narrowed = Object.values(filter).some((value) => value !== undefined);
  return (
    <>
      <PageHeader
        title="Operations"
        description="Long-running requests with their progress, newest first."
        actions={<RestCallButton calls={[{ method: "GET", path: "/api/v1/operations" }]} />}
      />
      <OperationFilters />
      <QueryFaces query={query} inWords={problemInWords} loadingLabel="Loading operations">
        {({ pages }) => {
          const rows = pages.flatMap((page) => page.items);
          return (
            <Panel flush>
              {rows.length === 0 && narrowed ? (
                <Empty icon={<IconListCheck size={40} stroke={1.5} />} title="No operation fits the filters">
                  Remove a filter to see other operations.
                </Empty>
              ) : rows.length === 0 ? (
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
