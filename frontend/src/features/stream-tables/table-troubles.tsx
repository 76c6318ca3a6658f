import { Button, Group, Stack, Text } from "@mantine/core";
import { useState } from "react";
import type { TableResolution } from "@/api/streams";
import type { Stream, StreamTable } from "@/api/types";
import { formatTime } from "@/lib/format";
import { listed } from "@/lib/sentences";
import { troubleInWords } from "@/lib/states";
import { HelpLink } from "@/ui/help-link";
import { ProblemAlert } from "@/ui/problem-alert";
import { RestCallButton } from "@/ui/rest-call";
import { ConfirmResolution, callOfResolution, ofStream, resolutionLabels } from "./table-resolution";

type Trouble = NonNullable<StreamTable["trouble"]>;

interface Troubled {
  table: StreamTable;
  trouble: Trouble;
  /** The destinations that have it. */
  at: { id: string; name: string }[];
}

const causeKey = ({ schema, table, state }: StreamTable, { kind, reason, cure }: Trouble) =>
  [schema, table, state, kind, reason, cure].join("\n");

/** A cause that several destinations have is told once. */
function troubledOf(stream: Stream): Troubled[] {
  const found = new Map<string, Troubled>();
  for (const { id, database, tables } of stream.destinations) {
    for (const table of tables) {
      const { trouble } = table;
      if (!trouble) continue;
      const key = causeKey(table, trouble);
      const known = found.get(key);
      if (known) {
        known.at.push({ id, name: database.name });
        if (trouble.since < known.trouble.since) known.trouble = trouble;
      } else found.set(key, { table, trouble, at: [{ id, name: database.name }] });
    }
  }
  return [...found.values()];
}

/** The ways out: one for the whole stream, or one for each destination. */
function choicesOf({ table: { schema, table }, trouble, at }: Troubled) {
  return trouble.resolutions.flatMap((resolution) =>
    (ofStream(resolution) ? at.slice(0, 1) : at).map(({ id, name }) => ({
      asked: { resolution, destinationId: id, schema, table },
      label: `${resolutionLabels[resolution]}${at.length > 1 && !ofStream(resolution) ? ` in ${name}` : ""}`,
    })),
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
      {troubled.slice(0, most).map((table) => (
        <TroubleCard
          key={causeKey(table.table, table.trouble)}
          stream={stream}
          troubled={table}
          mayAct={mayAct}
          onAsk={setAsked}
        />
      ))}
      {troubled.length > most && (
        <Text size="sm">And {troubled.length - most} more: see the Tables tab.</Text>
      )}
      <ConfirmResolution stream={stream} asked={asked} onClose={() => setAsked(null)} />
    </>
  );
}

interface TroubleCardProps extends Pick<TableTroublesProps, "stream" | "mayAct"> {
  troubled: Troubled;
  onAsk: (asked: TableResolution) => void;
}

function TroubleCard({ stream, troubled, mayAct, onAsk }: TroubleCardProps) {
  const { table, trouble, at } = troubled;
  const words = troubleInWords(trouble.kind);
  const choices = choicesOf(troubled);
  const where = listed(at.map(({ name }) => name));
  return (
    <Stack gap={6}>
      <ProblemAlert
        tone={words.tone}
        problem={{
          title: `${table.schema}.${table.table} in ${where}: ${words.label}`,
          message: trouble.reason,
          cure: trouble.cure,
          sql: trouble.sql,
          facts: [
            `since ${formatTime(trouble.since)}`,
            ...(table.state === "STOPPED" ? ["its changes are left out"] : []),
          ],
        }}
      />
      <Group gap="xs">
        {choices.map(({ asked, label }) => (
          <Button key={label} variant="default" disabled={!mayAct} onClick={() => onAsk(asked)}>
            {label}
          </Button>
        ))}
        {choices.length > 0 && (
          <RestCallButton calls={choices.map(({ asked }) => callOfResolution(stream, asked))} />
        )}
        <HelpLink help="guides/changed-tables" about="changed tables" />
      </Group>
    </Stack>
  );
}
