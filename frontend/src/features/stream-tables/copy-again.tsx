import { Button } from "@mantine/core";
import { useState } from "react";
import type { TableResolution } from "@/api/streams";
import type { Stream, StreamError } from "@/api/types";
import { isEngineError } from "@/lib/engine-errors";
import { RestCallButton } from "@/ui/rest-call";
import { ConfirmResolution, callOfResolution } from "./table-resolution";

/** Errors whose cure can be another copy of the table that they name. */
const CURED = ["destination_table_differs", "missing_table", "initial_copy_inconsistent"] as const;

/** As engines write a name. */
const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`;
const isNamed = (table: { schema: string; table: string }, name: string) =>
  name === `${quoted(table.schema)}.${quoted(table.table)}`;

/** The table of an error that another copy can cure, as the engine writes its name; null where none can. */
export function tableToCopy({ code, table, side }: StreamError): string | null {
  const isCured = side !== "source" && CURED.some((cured) => isEngineError({ code }, cured));
  return isCured ? table : null;
}

interface CopyAgainProps {
  stream: Stream;
  /** Its name as the engine writes it. Null: there is no button. */
  table: string | null;
  /** The destinations that need the copy. */
  at: { id: string; name: string }[];
  mayAct: boolean;
}

/** Buttons that copy a table again, one for each destination. */
export function CopyAgain({ stream, table, at, mayAct }: CopyAgainProps) {
  const [asked, setAsked] = useState<TableResolution | null>(null);
  const choices = choicesOf(stream, table, at);
  if (choices.length === 0) return null;
  const may = mayAct && stream.desired_status !== "DROPPED";
  return (
    <>
      {choices.map(({ resolution, name }) => (
        <Button
          key={resolution.destinationId}
          variant="default"
          disabled={!may}
          onClick={() => setAsked(resolution)}
        >
          {`Copy ${resolution.schema}.${resolution.table} again${choices.length > 1 ? ` in ${name}` : ""}`}
        </Button>
      ))}
      <RestCallButton calls={choices.map(({ resolution }) => callOfResolution(stream, resolution))} />
      <ConfirmResolution stream={stream} asked={asked} onClose={() => setAsked(null)} />
    </>
  );
}

/** The engine names the table as the destination does, or as the source: the stream knows both names. */
function choicesOf({ destinations }: Stream, named: string | null, at: CopyAgainProps["at"]) {
  if (!named) return [];
  return at.flatMap(({ id, name }) => {
    const tables = destinations.find((destination) => destination.id === id)?.tables ?? [];
    const found =
      tables.find(({ destination_name }) => isNamed(destination_name, named)) ??
      tables.find((table) => isNamed(table, named));
    if (!found) return [];
    const { schema, table } = found;
    return [{ name, resolution: { resolution: "copy", destinationId: id, schema, table } as const }];
  });
}
