import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { problemInWords } from "@/api/problem-in-words";
import { parkedContentsQuery } from "@/api/streams";
import type { ParkedTransaction } from "@/api/types";
import { counted } from "@/lib/format";
import { useNarrow } from "@/ui/narrow";
import { QueryFaces } from "@/ui/query-faces";
import { RestCall } from "@/ui/rest-call";
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
              {changes.map((change, place) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: a change has no other name than its place
                <ParkedChangeTable key={place} change={change} place={place + 1} />
              ))}
            </Stack>
          )}
        </QueryFaces>
        <RestCall call={{ method: "GET", path: `${path}/${error.id}` }} />
      </Stack>
    </Modal>
  );
}
