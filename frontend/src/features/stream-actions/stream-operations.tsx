import { Group, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { streamOperationsQuery } from "@/api/operations";
import type { Operation, Stream } from "@/api/types";
import { asText, compactCount, formatAgo } from "@/lib/format";
import { isUnfinished, operationKind } from "@/lib/operations";
import { AnchorLink } from "@/ui/anchor-link";
import { ToneIcon } from "@/ui/tone";
import classes from "./stream-operations.module.css";

/** What is being done with the stream now, how far it is, and what it waits for. Nothing else: nothing is shown. */
export function StreamOperations({ stream }: { stream: Stream }) {
  const unfinished = (useQuery(streamOperationsQuery(stream.id)).data ?? []).filter(isUnfinished);
  return unfinished.map((operation) => <Banner key={operation.id} operation={operation} stream={stream} />);
}

function Banner({ operation, stream }: { operation: Operation; stream: Stream }) {
  const { done, total, unit } = operation.progress;
  const destination = stream.destinations.find(({ id }) => id === operation.target.destination_id);
  return (
    <output className={classes.banner} aria-label="Under way">
      <Group gap={8} wrap="nowrap" align="flex-start">
        <ToneIcon tone="busy" />
        <div>
          <Text size="sm" fw={600}>
            {operationKind(operation.kind)}
            {destination && ` ${destination.database.name}`}
            {total ? `: ${asText(compactCount(done))} of ${asText(compactCount(total, unit))}` : ""}
          </Text>
          {operation.waiting_for && <Text size="sm">Waits for: {operation.waiting_for}</Text>}
          <Text size="xs" c="dimmed">
            Asked for by {operation.requested_by} {formatAgo(operation.created_at)} ·{" "}
            <AnchorLink to="/operations" size="xs">
              all operations
            </AnchorLink>
          </Text>
        </div>
      </Group>
    </output>
  );
}
