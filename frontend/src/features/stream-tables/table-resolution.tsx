import { Modal, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { problemInWords } from "@/api/problem-in-words";
import { type TableResolution, useTableResolution } from "@/api/streams";
import type { Stream, StreamDestination, TroubleResolution } from "@/api/types";
import type { RestCallSpec } from "@/lib/curl";
import { formatCount } from "@/lib/format";
import { FormButtons } from "@/ui/form-buttons";
import { ProblemAlert } from "@/ui/problem-alert";
import { isReasonShort, ReasonInput } from "@/ui/reason-input";
import { RestCall } from "@/ui/rest-call";

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
  { resolution, destinationId, schema, table, reason }: TableResolution,
): RestCallSpec {
  const at = ofStream(resolution) ? "" : `/destinations/${destinationId}`;
  return {
    method: "POST",
    path: `/api/v1/streams/${stream.id}${at}/tables:${resolution}`,
    body: reason ? { schema, table, reason } : { schema, table },
  };
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

interface AskedResolutionProps {
  stream: Stream;
  asked: TableResolution;
  onClose: () => void;
}

/** The audit log keeps the reason of a copy, which may discard parked transactions; the others take none. */
function AskedResolution({ stream, asked, onClose }: AskedResolutionProps) {
  const resolve = useTableResolution(stream.id);
  const [typed, setTyped] = useState("");
  const destination = stream.destinations.find(({ id }) => id === asked.destinationId);
  const where = destination?.database.name ?? "the destination";
  const copies = asked.resolution === "copy";
  const reason = typed.trim();
  const wanted: TableResolution = reason ? { ...asked, reason } : asked;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        resolve.mutate(wanted, { onSuccess: onClose });
      }}
    >
      <Stack gap="sm">
        <Text size="sm">{consequences[asked.resolution](where)}</Text>
        {copies && destination && <RowsThere destination={destination} asked={asked} />}
        {copies && (
          <ReasonInput
            description="Optional, 3 to 1000 characters. Recorded in the audit log."
            value={typed}
            onChange={setTyped}
          />
        )}
        {resolve.isError && <ProblemAlert problem={problemInWords(resolve.error)} />}
        <RestCall call={callOfResolution(stream, wanted)} />
        <FormButtons
          onCancel={onClose}
          disabled={reason !== "" && isReasonShort(reason)}
          loading={resolve.isPending}
        >
          {resolutionLabels[asked.resolution]}
        </FormButtons>
      </Stack>
    </form>
  );
}

interface ConfirmResolutionProps extends Omit<AskedResolutionProps, "asked"> {
  /** Null: the dialogue is closed. */
  asked: TableResolution | null;
}

/** Asks before something is done with a table, and does it. */
export function ConfirmResolution({ stream, asked, onClose }: ConfirmResolutionProps) {
  return (
    <Modal
      opened={asked !== null}
      onClose={onClose}
      title={asked ? `${resolutionLabels[asked.resolution]}: ${asked.schema}.${asked.table}` : ""}
      size="lg"
    >
      {asked && <AskedResolution stream={stream} asked={asked} onClose={onClose} />}
    </Modal>
  );
}
