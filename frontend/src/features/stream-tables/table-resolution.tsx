import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { problemInWords } from "@/api/problem-in-words";
import { type TableResolution, useTableResolution } from "@/api/streams";
import type { Stream, StreamDestination, TroubleResolution } from "@/api/types";
import type { RestCallSpec } from "@/lib/curl";
import { formatCount } from "@/lib/format";
import { ProblemAlert } from "@/ui/problem-alert";

export const resolutionLabels: Record<TroubleResolution, string> = {
  copy: "Copy again",
  follow: "Follow the rename",
  remove: "Remove it from the stream",
  accept: "Accept the partitions",
};

const consequences: Record<TroubleResolution, (where: string) => string> = {
  copy: (where) =>
    `Deletes all its rows in ${where} and copies the source's again. The path to ${where} waits meanwhile. Transactions in the error queue that changed only copied tables are discarded, because the copy includes their changes; the others are executed without their changes to this table. The audit log says how many.`,
  follow: () =>
    "Puts the table's new name into the stream's rules and renames the table at every destination.",
  remove: () => "Stops replicating the table. The destinations' tables stay as they are.",
  accept: (where) =>
    `Treats the rows in ${where} as correct. Rows that differ from the source's will keep differing.`,
};

/** Of the whole stream; the others are of one destination. */
export const ofStream = (resolution: TroubleResolution) => resolution === "follow" || resolution === "remove";

export function callOfResolution(
  stream: Stream,
  { resolution, destinationId, schema, table }: TableResolution,
): RestCallSpec {
  const at = ofStream(resolution) ? "" : `/destinations/${destinationId}`;
  return {
    method: "POST",
    path: `/api/v1/streams/${stream.id}${at}/tables:${resolution}`,
    body: { schema, table },
  };
}

interface ConfirmResolutionProps {
  stream: Stream;
  asked: TableResolution | null;
  onClose: () => void;
}

/** How many rows go, as far as it is known: those of the copy, and what was applied since. */
function RowsThere({ destination, asked }: { destination: StreamDestination; asked: TableResolution }) {
  const isIt = (table: { schema: string; table: string }) =>
    table.schema === asked.schema && table.table === asked.table;
  const copied = destination.instantiation?.tables.find(isIt);
  const applied = destination.tables.find(isIt);
  if (!copied || !applied || applied.inserts === null || applied.deletes === null) return null;
  const rows = Math.max(0, copied.rows_copied + applied.inserts - applied.deletes);
  return (
    <Text size="sm">
      Rows in {destination.database.name} now: about <strong>{formatCount(rows)}</strong>.
    </Text>
  );
}

/** Asks before something is done with a table, and does it. */
export function ConfirmResolution({ stream, asked, onClose }: ConfirmResolutionProps) {
  const resolve = useTableResolution(stream.id);
  const destination = stream.destinations.find(({ id }) => id === asked?.destinationId);
  const where = destination?.database.name ?? "the destination";
  const close = () => {
    resolve.reset();
    onClose();
  };
  return (
    <Modal
      opened={asked !== null}
      onClose={close}
      title={asked ? `${resolutionLabels[asked.resolution]}: ${asked.schema}.${asked.table}` : ""}
    >
      {asked && (
        <Stack gap="sm">
          <Text size="sm">{consequences[asked.resolution](where)}</Text>
          {asked.resolution === "copy" && destination && (
            <RowsThere destination={destination} asked={asked} />
          )}
          {resolve.isError && <ProblemAlert problem={problemInWords(resolve.error)} />}
          <Group justify="flex-end">
            <Button variant="default" onClick={close}>
              Cancel
            </Button>
            <Button loading={resolve.isPending} onClick={() => resolve.mutate(asked, { onSuccess: close })}>
              {resolutionLabels[asked.resolution]}
            </Button>
          </Group>
        </Stack>
      )}
    </Modal>
  );
}
