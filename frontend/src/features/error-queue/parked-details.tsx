import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { problemInWords } from "@/api/problem-in-words";
import { parkedContentsQuery, useParkedEdit } from "@/api/streams";
import type { ParkedChange, ParkedTransaction } from "@/api/types";
import { counted } from "@/lib/format";
import { useNarrow } from "@/ui/narrow";
import { ProblemAlert } from "@/ui/problem-alert";
import { QueryFaces } from "@/ui/query-faces";
import { RestCall } from "@/ui/rest-call";
import { type ChangeDecision, EditChange } from "./edit-change";
import { ParkedChangeTable } from "./parked-change-table";

interface ParkedDetailsProps {
  streamId: string;
  destinationId: string;
  error: ParkedTransaction;
  path: string;
  onClose: () => void;
}

/** A parked transaction opened: what it wanted, beside what the destination has. */
export function ParkedDetails({ streamId, destinationId, error, path, onClose }: ParkedDetailsProps) {
  const contents = useQuery(parkedContentsQuery(streamId, destinationId, error.id));
  const narrow = useNarrow();
  const restored = useParkedEdit(streamId, destinationId, error.id);
  const [deciding, setDeciding] = useState<ChangeDecision | null>(null);
  const actionsOf = (change: ParkedChange) => {
    const { number } = change;
    if (number === null) return {};
    return {
      onLeaveOut: () => setDeciding({ change, number, leavesOut: true }),
      onEdit: () => setDeciding({ change, number, leavesOut: false }),
      onRestore: () => restored.mutate({ number, body: null }),
    };
  };
  return (
    <Modal opened onClose={onClose} title={`Transaction ${error.xid}`} size="80rem" fullScreen={narrow}>
      <Stack gap="md">
        <Text size="sm">{error.message}</Text>
        <QueryFaces query={contents} inWords={problemInWords} loadingLabel="Reading the transaction">
          {({ changes, changes_total }) => (
            <Stack gap="md">
              <Group justify="space-between">
                <Text size="sm" c="dimmed">
                  {counted(changes_total, "change")}.
                  {changes.length < changes_total && ` The first ${changes.length} are shown.`} ≠ marks values
                  that differ from the destination's row now.
                </Text>
                <Button
                  variant="default"
                  loading={contents.isFetching}
                  onClick={() => void contents.refetch()}
                >
                  Read again
                </Button>
              </Group>
              {restored.isError && <ProblemAlert problem={problemInWords(restored.error)} />}
              {changes.map((change, place) => (
                <ParkedChangeTable
                  // biome-ignore lint/suspicious/noArrayIndexKey: a change has no other name than its place
                  key={place}
                  change={change}
                  place={change.number ?? place + 1}
                  restoring={restored.isPending && restored.variables?.number === change.number}
                  {...actionsOf(change)}
                />
              ))}
            </Stack>
          )}
        </QueryFaces>
        <RestCall call={{ method: "GET", path: `${path}/${error.id}` }} />
        {deciding && (
          <EditChange
            {...deciding}
            streamId={streamId}
            destinationId={destinationId}
            errorId={error.id}
            path={path}
            onClose={() => setDeciding(null)}
          />
        )}
      </Stack>
    </Modal>
  );
}
