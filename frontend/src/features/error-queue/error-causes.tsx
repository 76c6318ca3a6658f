import { Button, Group, Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";
import type { ErrorCause } from "@/api/types";
import { formatCount, formatTime } from "@/lib/format";
import { type Column, DataTable } from "@/ui/data-table";
import { useNarrow } from "@/ui/narrow";
import { ExecuteSeveral } from "./execute-several";

interface ErrorCausesProps {
  streamId: string;
  destinationId: string;
  causes: ErrorCause[];
  cureOf?: (cause: ErrorCause) => ReactNode;
  /** The one whose transactions are listed. */
  chosen: string | undefined;
  onChoose: (cause: string | undefined) => void;
  path: string;
  mayExecute: boolean;
}

/** The whole queue by what its transactions failed with, and what most likely cures each group. */
export function ErrorCauses(props: ErrorCausesProps) {
  const narrow = useNarrow();
  const actions: Column<ErrorCause> = {
    key: "actions",
    header: "Actions",
    cell: (cause) => <Actions cause={cause} {...props} />,
  };
  const columns: Column<ErrorCause>[] = [
    {
      key: "transactions",
      header: "Transactions",
      align: "right",
      cell: ({ transactions }) => formatCount(transactions),
    },
    { key: "oldest", header: "Oldest parked", cell: ({ oldest }) => formatTime(oldest) },
    { key: "cause", header: "Cause and likely cure", cell: (cause) => <Words cause={cause} /> },
    actions,
  ];
  const together: Column<ErrorCause> = {
    key: "all",
    header: "Cause",
    cell: (cause) => (
      <Stack gap={4} py={6}>
        <Text size="xs" c="dimmed">
          {formatCount(cause.transactions)} · since {formatTime(cause.oldest)}
        </Text>
        <Words cause={cause} />
        <Actions cause={cause} {...props} />
      </Stack>
    ),
  };
  return (
    <DataTable
      label="Causes"
      columns={narrow ? [together] : columns}
      rows={props.causes}
      rowKey={({ cause }) => cause}
    />
  );
}

function Words({ cause }: { cause: ErrorCause }) {
  const where = [cause.table, cause.object].filter(Boolean).join(" · ");
  const codes = [cause.code, cause.sqlstate && `SQLSTATE ${cause.sqlstate}`].filter(Boolean).join(" · ");
  return (
    <Stack gap={2} maw={640} style={{ overflowWrap: "anywhere" }}>
      <Text size="sm">{cause.title}</Text>
      <Text size="xs" c="dimmed">
        {[where, codes].filter(Boolean).join(" · ")}
      </Text>
      <Text size="xs">{cause.cure}</Text>
    </Stack>
  );
}

function Actions({
  cause,
  chosen,
  onChoose,
  streamId,
  destinationId,
  path,
  mayExecute,
  cureOf,
}: ErrorCausesProps & { cause: ErrorCause }) {
  const isChosen = chosen === cause.cause;
  return (
    <Group gap={6}>
      <Button
        variant={isChosen ? "light" : "default"}
        aria-pressed={isChosen}
        aria-label={`List only: ${cause.title}`}
        onClick={() => onChoose(isChosen ? undefined : cause.cause)}
      >
        List only these
      </Button>
      {cause.kind !== "waits" && (
        <ExecuteSeveral
          streamId={streamId}
          destinationId={destinationId}
          total={cause.transactions}
          cause={cause}
          path={path}
          disabled={!mayExecute}
        />
      )}
      {cureOf?.(cause)}
    </Group>
  );
}
