import { Box, Button, Code, Group, Stack, Text } from "@mantine/core";
import { IconCircleCheck } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { problemInWords } from "@/api/problem-in-words";
import { parkedQuery, useParkedAction } from "@/api/streams";
import type { ParkedTransaction } from "@/api/types";
import { formatTime } from "@/lib/format";
import { type Column, DataTable } from "@/ui/data-table";
import { Empty } from "@/ui/faces";
import { ProblemAlert } from "@/ui/problem-alert";
import { QueryFaces } from "@/ui/query-faces";
import { RestCallButton } from "@/ui/rest-call";
import { ConfirmDecision, type Decision } from "./confirm-decision";

interface ErrorQueueProps {
  streamId: string;
  destinationId: string;
  mayAct: boolean;
}

/** Transactions that failed for good and were parked whole at the destination. */
export function ErrorQueue({ streamId, destinationId, mayAct }: ErrorQueueProps) {
  const parked = useQuery(parkedQuery(streamId, destinationId));
  const act = useParkedAction(streamId, destinationId);
  const [deciding, setDeciding] = useState<Decision | null>(null);
  const path = `/api/v1/streams/${streamId}/destinations/${destinationId}/errors`;

  const columns: Column<ParkedTransaction>[] = [
    {
      key: "at",
      header: "Parked",
      sortBy: (error) => error.parked_at,
      cell: (error) => formatTime(error.parked_at),
    },
    {
      key: "lsn",
      header: "Commit LSN",
      definition: "Where the transaction committed in the source's write-ahead log.",
      cell: (error) => <Code>{error.commit_lsn}</Code>,
    },
    {
      key: "xid",
      header: "Transaction",
      align: "right",
      sortBy: (error) => error.xid,
      cell: (error) => error.xid,
    },
    {
      key: "lcrs",
      header: "LCRs",
      align: "right",
      sortBy: (error) => error.lcrs,
      cell: (error) => error.lcrs,
    },
    { key: "tables", header: "Tables", cell: (error) => error.tables.join(", ") },
    {
      key: "message",
      header: "Error",
      cell: (error) => (
        <Box maw={420}>
          <Text size="sm">{error.message}</Text>
          <Text size="xs" c="dimmed">
            {[error.code, error.sqlstate && `SQLSTATE ${error.sqlstate}`].filter(Boolean).join(" · ")}
          </Text>
        </Box>
      ),
    },
    {
      key: "actions",
      header: "Actions",
      cell: (error) => (
        <Group gap={6} wrap="nowrap">
          <Button
            variant="default"
            disabled={!mayAct}
            aria-label={`Execute transaction ${error.xid}`}
            loading={act.isPending && act.variables?.errorId === error.id}
            onClick={() => setDeciding({ error, discards: false })}
          >
            Execute
          </Button>
          <Button
            variant="default"
            disabled={!mayAct}
            aria-label={`Discard transaction ${error.xid}`}
            onClick={() => setDeciding({ error, discards: true })}
          >
            Discard
          </Button>
        </Group>
      ),
    },
  ];

  return (
    <QueryFaces query={parked} inWords={problemInWords} loadingLabel="Loading the error queue">
      {({ errors }) =>
        errors.length === 0 ? (
          <Empty icon={<IconCircleCheck size={36} stroke={1.5} />} title="The error queue is empty">
            With disable_on_error off, a transaction that fails for good is parked here, whole, with those
            that depend on it.
          </Empty>
        ) : (
          <Stack gap="xs">
            {act.isError && <ProblemAlert problem={problemInWords(act.error)} />}
            <Group justify="flex-end" px={14}>
              <RestCallButton
                label="REST calls"
                calls={[
                  { method: "GET", path },
                  { method: "POST", path: `${path}/ERROR_ID/execute` },
                  { method: "DELETE", path: `${path}/ERROR_ID?reason=WHY` },
                ]}
              />
            </Group>
            <DataTable
              label="Error queue"
              columns={columns}
              rows={errors}
              rowKey={(error) => String(error.id)}
            />
            {deciding && (
              <ConfirmDecision
                {...deciding}
                path={path}
                onClose={() => setDeciding(null)}
                onConfirm={(reason) => {
                  act.mutate({ errorId: deciding.error.id, reason });
                  setDeciding(null);
                }}
              />
            )}
          </Stack>
        )
      }
    </QueryFaces>
  );
}
