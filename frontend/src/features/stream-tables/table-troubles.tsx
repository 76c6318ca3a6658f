import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { problemInWords } from "@/api/problem-in-words";
import { type TableResolution, useTableResolution } from "@/api/streams";
import type { Stream, StreamTable, TroubleResolution } from "@/api/types";
import type { RestCallSpec } from "@/lib/curl";
import { formatTime } from "@/lib/format";
import { sentenceCase } from "@/lib/states";
import { ProblemAlert } from "@/ui/problem-alert";
import { RestCallButton } from "@/ui/rest-call";

const labels: Record<TroubleResolution, string> = {
  copy: "Copy again",
  follow: "Follow the rename",
  remove: "Take it out of the stream",
  accept: "Accept the partitions",
};

const consequences: Record<TroubleResolution, string> = {
  copy: "Its rows at the destination are deleted and the source's are copied again. The path waits meanwhile.",
  follow: "The stream's rules get the table's new name, and the destination's table is renamed.",
  remove: "The stream replicates the table no longer. The destination's table stays as it is.",
  accept: "The destination's rows count as right. Those that differ from the source's stay so.",
};

/** Of the whole stream; the others are of one destination. */
const ofStream = (resolution: TroubleResolution) => resolution === "follow" || resolution === "remove";

function callOf(stream: Stream, { resolution, destinationId, schema, table }: TableResolution): RestCallSpec {
  const at = ofStream(resolution) ? "" : `/destinations/${destinationId}`;
  return {
    method: "POST",
    path: `/api/v1/streams/${stream.id}${at}/tables:${resolution}`,
    body: { schema, table },
  };
}

interface Troubled {
  table: StreamTable & { trouble: NonNullable<StreamTable["trouble"]> };
  destinationId: string;
  where: string;
}

function troubledOf(stream: Stream): Troubled[] {
  return stream.destinations.flatMap(({ id, database, tables }) =>
    tables.flatMap((table) =>
      table.trouble
        ? [{ table: { ...table, trouble: table.trouble }, destinationId: id, where: database.name }]
        : [],
    ),
  );
}

interface TableTroublesProps {
  stream: Stream;
  mayAct: boolean;
  /** How many are shown; the others are counted. */
  most?: number;
}

/** Tables that are not at the source what they were when they were copied, each with what cures it. */
export function TableTroubles({ stream, mayAct, most = Number.POSITIVE_INFINITY }: TableTroublesProps) {
  const resolve = useTableResolution(stream.id);
  const [asked, setAsked] = useState<TableResolution | null>(null);
  const close = () => {
    resolve.reset();
    setAsked(null);
  };
  const troubled = troubledOf(stream);
  return (
    <>
      {troubled.slice(0, most).map(({ table, destinationId, where }) => {
        const { trouble } = table;
        const choices = trouble.resolutions.map((resolution) => ({
          resolution,
          destinationId,
          schema: table.schema,
          table: table.table,
        }));
        return (
          <Stack key={`${destinationId} ${table.schema}.${table.table}`} gap={6}>
            <ProblemAlert
              tone={trouble.kind === "RENAMED" ? "warning" : "bad"}
              problem={{
                title: `${table.schema}.${table.table} in ${where}: ${sentenceCase(trouble.kind)}`,
                message: trouble.reason,
                cure: trouble.cure,
                facts: [
                  `since ${formatTime(trouble.since)}`,
                  ...(table.state === "STOPPED" ? ["its changes are left out"] : []),
                ],
              }}
            />
            <Group gap="xs">
              {choices.map((choice) => (
                <Button
                  key={choice.resolution}
                  variant="default"
                  disabled={!mayAct}
                  onClick={() => setAsked(choice)}
                >
                  {labels[choice.resolution]}
                </Button>
              ))}
              <RestCallButton calls={choices.map((choice) => callOf(stream, choice))} />
            </Group>
          </Stack>
        );
      })}
      {troubled.length > most && (
        <Text size="sm">And {troubled.length - most} more: see the tab Tables.</Text>
      )}
      <Modal
        opened={asked !== null}
        onClose={close}
        title={asked ? `${labels[asked.resolution]}: ${asked.schema}.${asked.table}` : ""}
      >
        {asked && (
          <Stack gap="sm">
            <Text size="sm">{consequences[asked.resolution]}</Text>
            {resolve.isError && <ProblemAlert problem={problemInWords(resolve.error)} />}
            <Group justify="flex-end">
              <Button variant="default" onClick={close}>
                Cancel
              </Button>
              <Button loading={resolve.isPending} onClick={() => resolve.mutate(asked, { onSuccess: close })}>
                {labels[asked.resolution]}
              </Button>
            </Group>
          </Stack>
        )}
      </Modal>
    </>
  );
}
