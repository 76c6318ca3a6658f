import { Box, Button, Code, Group, Stack, Text } from "@mantine/core";
import { IconChevronDown, IconChevronRight } from "@tabler/icons-react";
import type { ParkedTransaction } from "@/api/types";
import { formatCount, formatTime } from "@/lib/format";
import type { Column } from "@/ui/data-table";
import { editsInWords } from "./edits-in-words";

interface Actions {
  mayAct: boolean;
  executing: number | null;
  discarding: number | null;
  onOpen: (error: ParkedTransaction) => void;
  onDecide: (error: ParkedTransaction, discards: boolean) => void;
  /** Those whose dependants are shown. */
  unfolded: ReadonlySet<number>;
  onUnfold: (error: ParkedTransaction) => void;
}

export function parkedColumns(actions: Actions): Column<ParkedTransaction>[] {
  return [
    { key: "at", header: "Parked", cell: (error) => formatTime(error.parked_at) },
    {
      key: "lsn",
      header: "Commit LSN",
      definition: "Where the transaction committed in the source's write-ahead log.",
      cell: (error) => <Code>{error.commit_lsn}</Code>,
    },
    {
      key: "id",
      header: "ID",
      definition: "The transaction's number in the queue, as the command line and messages give it.",
      align: "right",
      cell: (error) => error.id,
    },
    { key: "xid", header: "Transaction", align: "right", cell: (error) => error.xid },
    { key: "lcrs", header: "LCRs", align: "right", cell: (error) => error.lcrs },
    { key: "tables", header: "Tables", cell: (error) => error.tables.join(", ") },
    { key: "message", header: "Error", cell: (error) => <Message error={error} /> },
    { key: "actions", header: "Actions", cell: (error) => <Buttons error={error} {...actions} /> },
  ];
}

/** All in one cell, for a phone. */
export function narrowColumns(actions: Actions): Column<ParkedTransaction>[] {
  return [
    {
      key: "all",
      header: "Transaction",
      cell: (error) => (
        <Stack gap={4} py={6}>
          <Text size="xs" c="dimmed">
            {error.id} · xid {error.xid} · {formatTime(error.parked_at)} · {error.tables.join(", ")}
          </Text>
          <Message error={error} />
          <Buttons error={error} {...actions} />
        </Stack>
      ),
    },
  ];
}

function Message({ error }: { error: ParkedTransaction }) {
  return (
    <Box maw={420} style={{ overflowWrap: "anywhere" }}>
      {error.message === null ? (
        <Text size="sm" c="dimmed">
          The message quotes rows, so only operators see it.
        </Text>
      ) : (
        <Text size="sm">{error.message}</Text>
      )}
      <Text size="xs" c="dimmed">
        {[
          error.code,
          error.sqlstate && `SQLSTATE ${error.sqlstate}`,
          error.constraint && `constraint ${error.constraint}`,
          error.failed_change !== null && `at change ${formatCount(error.failed_change)}`,
          editsInWords(error).trim(),
        ]
          .filter(Boolean)
          .join(" · ")}
      </Text>
    </Box>
  );
}

function Buttons(props: Actions & { error: ParkedTransaction }) {
  const { error, mayAct, executing, discarding, onOpen, onDecide, unfolded, onUnfold } = props;
  return (
    <Group gap={6} wrap="nowrap">
      <Button
        variant="default"
        aria-expanded={unfolded.has(error.id)}
        aria-label={`Behind transaction ${error.xid}`}
        leftSection={unfolded.has(error.id) ? <IconChevronDown size={14} /> : <IconChevronRight size={14} />}
        onClick={() => onUnfold(error)}
      >
        Behind it
      </Button>
      <Button
        variant="default"
        disabled={!mayAct}
        aria-label={`Open transaction ${error.xid}`}
        onClick={() => onOpen(error)}
      >
        Open
      </Button>
      <Button
        variant="default"
        disabled={!mayAct}
        aria-label={`Execute transaction ${error.xid}`}
        loading={executing === error.id}
        onClick={() => onDecide(error, false)}
      >
        Execute
      </Button>
      <Button
        variant="default"
        disabled={!mayAct}
        aria-label={`Discard transaction ${error.xid}`}
        loading={discarding === error.id}
        onClick={() => onDecide(error, true)}
      >
        Discard
      </Button>
    </Group>
  );
}
