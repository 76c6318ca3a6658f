import { Anchor, Box, Button, Code, Group, Stack, Text } from "@mantine/core";
import { IconArrowBackUp, IconSearchOff } from "@tabler/icons-react";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { problemInWords } from "@/api/problem-in-words";
import { foundQuery } from "@/api/searches";
import type { Change, Search } from "@/api/types";
import { formatTime } from "@/lib/format";
import { type Column, DataTable } from "@/ui/data-table";
import { Empty } from "@/ui/faces";
import { QueryFaces } from "@/ui/query-faces";
import { ShowOlder } from "@/ui/show-older";
import { ChangeDetails } from "./change-details";
import { UndoScript } from "./undo-script";
import { columnInWords, keyInWords, shownColumns } from "./values";

interface ChangeListProps {
  databaseId: string;
  search: Search;
}

/** The changes that an ended search has found, in the order of commits. */
export function ChangeList({ databaseId, search }: ChangeListProps) {
  const found = useInfiniteQuery(foundQuery(databaseId, search.id));
  const [opened, setOpened] = useState<Change | null>(null);
  const [undoing, setUndoing] = useState(false);
  const path = `/api/v1/sources/${databaseId}/searches/${search.id}`;
  if (search.found === 0)
    return (
      <Empty icon={<IconSearchOff size={36} stroke={1.5} />} title="No change was found">
        The log was read from {search.from} to {search.to}.
      </Empty>
    );
  return (
    <Stack gap="xs">
      <Group justify="flex-end" gap="sm" px={14}>
        <Anchor size="sm" href={`${path}:export?format=csv`} download>
          Export as CSV
        </Anchor>
        <Anchor size="sm" href={`${path}:export`} download>
          Export as NDJSON
        </Anchor>
        <Button
          variant="default"
          leftSection={<IconArrowBackUp size={14} aria-hidden />}
          onClick={() => setUndoing(true)}
        >
          Undo as SQL
        </Button>
      </Group>
      <QueryFaces query={found} inWords={problemInWords} loadingLabel="Loading the changes">
        {({ pages }) => (
          <DataTable
            label="Changes"
            columns={columns(setOpened)}
            rows={pages.flatMap((page) => page.changes)}
            rowKey={(change) => String(change.number)}
            cardName={(change) => `Change ${change.number}`}
          />
        )}
      </QueryFaces>
      <ShowOlder query={found} label="Show later changes" />
      {search.truncated && (
        <Text size="sm" px={14} pb={10}>
          There may be more: the search has reached its limit. Search again from the time of the last change.
        </Text>
      )}
      {opened && (
        <ChangeDetails
          databaseId={databaseId}
          searchId={search.id}
          change={opened}
          onClose={() => setOpened(null)}
        />
      )}
      {undoing && (
        <UndoScript databaseId={databaseId} searchId={search.id} onClose={() => setUndoing(false)} />
      )}
    </Stack>
  );
}

function columns(open: (change: Change) => void): Column<Change>[] {
  return [
    { key: "time", header: "Committed", cell: ({ commit_time }) => formatTime(commit_time) },
    {
      key: "xid",
      header: "Transaction",
      definition: "Its number at the source.",
      align: "right",
      cell: ({ xid }) => <Code>{xid}</Code>,
    },
    { key: "operation", header: "Operation", cell: ({ operation }) => operation },
    { key: "table", header: "Table", cell: ({ schema, table }) => `${schema}.${table}` },
    { key: "key", header: "Key", cell: (change) => <Wrapped>{keyInWords(change)}</Wrapped> },
    {
      key: "columns",
      header: "Values",
      definition: "For an update, the columns whose values changed; otherwise all known columns.",
      cell: (change) => (
        <Wrapped>
          {shownColumns(change)
            .map((column) => columnInWords(change.operation, column))
            .join("; ")}
        </Wrapped>
      ),
    },
    {
      key: "actions",
      header: "Actions",
      cell: (change) => (
        <Button variant="default" aria-label={`Open change ${change.number}`} onClick={() => open(change)}>
          Open
        </Button>
      ),
    },
  ];
}

function Wrapped({ children }: { children: string }) {
  return (
    <Box maw={420} style={{ overflowWrap: "anywhere" }}>
      <Text size="sm">{children}</Text>
    </Box>
  );
}
