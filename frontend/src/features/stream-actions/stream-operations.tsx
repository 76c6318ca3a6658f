import { Group, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { streamOperationsQuery } from "@/api/operations";
import type { Operation, Stream } from "@/api/types";
import { copiedInWords, copiedOf } from "@/lib/copied";
import { doneOf, formatAgo } from "@/lib/format";
import { isUnfinished, operationTitle } from "@/lib/operations";
import { AnchorLink } from "@/ui/anchor-link";
import { ProblemAlert } from "@/ui/problem-alert";
import { ToneIcon } from "@/ui/tone";
import classes from "./stream-operations.module.css";

/** For so long after its end the page shows what was refused. */
const FAILED_SHOWN_MS = 120_000;

/**
 * Operations on the stream that run now, how far each one is, and what it waits for; and, for a while, the failure of
 * the last one that was asked for. Renders nothing if there are none.
 */
export function StreamOperations({ stream }: { stream: Stream }) {
  const operations = useQuery(streamOperationsQuery(stream.id)).data ?? [];
  const failed = operations[0];
  return (
    <>
      {operations.filter(isUnfinished).map((operation) => (
        <Banner key={operation.id} operation={operation} stream={stream} />
      ))}
      {failed?.state === "failed" &&
        failed.error &&
        failed.finished_at &&
        Date.now() - Date.parse(failed.finished_at) < FAILED_SHOWN_MS && (
          <ProblemAlert
            problem={{
              ...failed.error,
              message: failed.error.detail ?? failed.error.message,
              title: `${title(failed, stream)} failed: ${failed.error.title}`,
              facts: [`requested by ${failed.requested_by} ${formatAgo(failed.created_at)}`],
            }}
          />
        )}
    </>
  );
}

function title(operation: Operation, stream: Stream): string {
  const destination = stream.destinations.find(({ id }) => id === operation.target.destination_id);
  if (!destination) return operationTitle(operation);
  if (!operation.target.table) return `${operationTitle(operation)} ${destination.database.name}`;
  return stream.destinations.length > 1
    ? `${operationTitle(operation)} at ${destination.database.name}`
    : operationTitle(operation);
}

/** From the stream's own copies, as the board of the copy shows them: two sources would show two figures. */
function copyInWords({ target, progress }: Operation, stream: Stream): string | null {
  if (progress.unit !== "rows")
    return progress.total ? doneOf(progress.done, progress.total, progress.unit) : null;
  const tables = stream.destinations
    .filter(({ id }) => target.destination_id === null || target.destination_id === id)
    .flatMap(({ instantiation }) =>
      instantiation && instantiation.stage !== "finished" ? instantiation.tables : [],
    )
    .filter(({ schema, table }) => target.table === null || target.table === `${schema}.${table}`);
  if (tables.length === 0) return null;
  return copiedInWords(copiedOf(tables));
}

function Banner({ operation, stream }: { operation: Operation; stream: Stream }) {
  const copied = copyInWords(operation, stream);
  return (
    <output className={classes.banner} aria-label="In progress">
      <Group gap={8} wrap="nowrap" align="flex-start">
        <ToneIcon tone="busy" />
        <div>
          <Text size="sm" fw={600}>
            {title(operation, stream)}
            {copied && `: ${copied}`}
          </Text>
          {operation.waiting_for && <Text size="sm">Waits for: {operation.waiting_for}</Text>}
          <Text size="xs" c="dimmed">
            Requested by {operation.requested_by} {formatAgo(operation.created_at)} ·{" "}
            <AnchorLink to="/operations" search={{ stream: stream.id }} size="xs">
              all operations of the stream
            </AnchorLink>
          </Text>
        </div>
      </Group>
    </output>
  );
}
