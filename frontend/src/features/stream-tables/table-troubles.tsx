import { Button, Group, Stack, Text } from "@mantine/core";
import { useState } from "react";
import type { TableResolution } from "@/api/streams";
import type { Stream, StreamTable } from "@/api/types";
import { formatTime } from "@/lib/format";
import { troubleInWords } from "@/lib/states";
import { HelpLink } from "@/ui/help-link";
import { ProblemAlert } from "@/ui/problem-alert";
import { RestCallButton } from "@/ui/rest-call";
import { ConfirmResolution, callOfResolution, resolutionLabels } from "./table-resolution";

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
  const [asked, setAsked] = useState<TableResolution | null>(null);
  const troubled = troubledOf(stream);
  return (
    <>
      {troubled.slice(0, most).map(({ table, destinationId, where }) => {
        const { trouble } = table;
        const words = troubleInWords(trouble.kind);
        const choices = trouble.resolutions.map((resolution) => ({
          resolution,
          destinationId,
          schema: table.schema,
          table: table.table,
        }));
        return (
          <Stack key={`${destinationId} ${table.schema}.${table.table}`} gap={6}>
            <ProblemAlert
              tone={words.tone}
              problem={{
                title: `${table.schema}.${table.table} in ${where}: ${words.label}`,
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
                  {resolutionLabels[choice.resolution]}
                </Button>
              ))}
              {choices.length > 0 && (
                <RestCallButton calls={choices.map((choice) => callOfResolution(stream, choice))} />
              )}
              <HelpLink help="guides/changed-tables" about="changed tables" />
            </Group>
          </Stack>
        );
      })}
      {troubled.length > most && (
        <Text size="sm">And {troubled.length - most} more: see the Tables tab.</Text>
      )}
      <ConfirmResolution stream={stream} asked={asked} onClose={() => setAsked(null)} />
    </>
  );
}
