import { Anchor, Box, Button, Code, Group, Select, Stack, Text } from "@mantine/core";
import { IconCircleCheck } from "@tabler/icons-react";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { conflictCountsQuery, conflictsQuery } from "@/api/conflicts";
import { problemInWords } from "@/api/problem-in-words";
import type { ConflictCount, LoggedChange } from "@/api/types";
import { formatCount, formatTime } from "@/lib/format";
import { type Column, DataTable } from "@/ui/data-table";
import { Empty } from "@/ui/faces";
import { HelpLink } from "@/ui/help-link";
import { QueryFaces } from "@/ui/query-faces";
import { RestCallButton } from "@/ui/rest-call";
import { ShowOlder } from "@/ui/show-older";
import { ConflictDetails } from "./conflict-details";

interface ConflictLogProps {
  streamId: string;
  destinationId: string;
  mayAct: boolean;
}

const ACTIONS: Record<LoggedChange["action"], string> = {
  discard: "left out",
  overwrite: "overwritten",
  skip: "skipped",
  park: "its transaction was parked",
  maximum: "the higher value won",
  minimum: "the lower value won",
  latest: "the later row won",
  priority: "by its place in the list",
  delta: "difference added",
  append: "elements appended",
  merge: "members merged",
  expression: "by an expression",
  combined: "decided by columns",
  statement: "settled by a statement",
};
const guide = <HelpLink help="guides/conflicts" about="conflicts" />;

const countColumns: Column<ConflictCount>[] = [
  { key: "changes", header: "Changes", align: "right", cell: ({ changes }) => formatCount(changes) },
  { key: "table", header: "Table", cell: ({ schema, table }) => `${schema}.${table}` },
  { key: "kind", header: "Conflict", cell: kindInWords },
  { key: "action", header: "Decision", cell: ({ action }) => ACTIONS[action] },
  { key: "newest", header: "Newest", cell: ({ newest }) => formatTime(newest) },
];

function kindInWords({ kind, sqlstate }: { kind: LoggedChange["kind"]; sqlstate: string | null }): string {
  return kind === "error" ? `none: SQLSTATE ${sqlstate}` : kind;
}

/** Single changes that handlers and policies have settled at a destination. */
export function ConflictLog({ streamId, destinationId, mayAct }: ConflictLogProps) {
  const [kind, setKind] = useState<LoggedChange["kind"] | null>(null);
  const counts = useQuery(conflictCountsQuery(streamId, destinationId));
  const listed = useInfiniteQuery(conflictsQuery(streamId, destinationId, kind ?? undefined));
  const [opened, setOpened] = useState<LoggedChange | null>(null);
  const path = `/api/v1/streams/${streamId}/destinations/${destinationId}/conflicts`;
  return (
    <QueryFaces query={counts} inWords={problemInWords} loadingLabel="Loading the conflict log">
      {({ counts: counted }) => {
        if (counted.length === 0)
          return (
            <Empty icon={<IconCircleCheck size={36} stroke={1.5} />} title="The conflict log is empty">
              A change that conflict_handlers or error_policies settle is listed here, while the rest of its
              transaction is applied.
              <br />
              {guide}
            </Empty>
          );
        const kinds = [...new Set(counted.map((count) => count.kind))];
        return (
          <Stack gap="xs">
            <Group justify="space-between" px={14}>
              <Group gap="sm">
                <Select
                  size="xs"
                  aria-label="Conflict"
                  placeholder="All kinds"
                  data={kinds}
                  value={kind}
                  onChange={setKind}
                  clearable
                />
                {guide}
              </Group>
              <Group gap="sm">
                {mayAct && (
                  <>
                    <Anchor size="sm" href={`${path}:export?format=csv`} download>
                      Export as CSV
                    </Anchor>
                    <Anchor size="sm" href={`${path}:export`} download>
                      Export as NDJSON
                    </Anchor>
                  </>
                )}
                <RestCallButton
                  label="REST calls"
                  calls={[
                    { method: "GET", path: kind ? `${path}?kind=${kind}` : path },
                    { method: "GET", path: `${path}/CONFLICT_ID` },
                    { method: "GET", path: `${path}:count` },
                    { method: "GET", path: `${path}:export?format=csv` },
                  ]}
                />
              </Group>
            </Group>
            <DataTable
              label="Conflicts by table and kind"
              columns={countColumns}
              rows={counted}
              rowKey={(count) =>
                [count.schema, count.table, count.kind, count.sqlstate, count.action].join(" ")
              }
            />
            <QueryFaces query={listed} inWords={problemInWords} loadingLabel="Loading the entries">
              {({ pages }) => (
                <DataTable
                  label="Conflict log"
                  empty="No entries of this kind."
                  columns={entryColumns(mayAct, setOpened)}
                  rows={pages.flatMap((page) => page.conflicts)}
                  rowKey={(entry) => String(entry.id)}
                />
              )}
            </QueryFaces>
            <ShowOlder query={listed} />
            {opened && (
              <ConflictDetails
                streamId={streamId}
                destinationId={destinationId}
                entry={opened}
                path={path}
                onClose={() => setOpened(null)}
              />
            )}
          </Stack>
        );
      }}
    </QueryFaces>
  );
}

function entryColumns(mayAct: boolean, onOpen: (entry: LoggedChange) => void): Column<LoggedChange>[] {
  return [
    { key: "at", header: "Settled", cell: (entry) => formatTime(entry.logged_at) },
    {
      key: "lsn",
      header: "Commit LSN",
      definition: "Where the transaction committed in the source's write-ahead log.",
      cell: (entry) => <Code>{entry.commit_lsn}</Code>,
    },
    { key: "change", header: "Change", align: "right", cell: (entry) => entry.change },
    { key: "what", header: "What", cell: (entry) => `${entry.operation} ${entry.schema}.${entry.table}` },
    { key: "kind", header: "Conflict", cell: kindInWords },
    { key: "action", header: "Decision", cell: (entry) => ACTIONS[entry.action] },
    {
      key: "message",
      header: "Error",
      cell: (entry) => (
        <Box maw={420} style={{ overflowWrap: "anywhere" }}>
          <Text size="sm" c={entry.message === null ? "dimmed" : undefined}>
            {entry.message ?? "The message quotes rows, so only operators see it."}
          </Text>
        </Box>
      ),
    },
    {
      key: "actions",
      header: "Actions",
      cell: (entry) => (
        <Button
          variant="default"
          disabled={!mayAct}
          aria-label={`Open conflict ${entry.id}`}
          onClick={() => onOpen(entry)}
        >
          Open
        </Button>
      ),
    },
  ];
}
