// Names of the kinds of operation, wherever one is shown.
import type { components } from "@/api/generated/schema";

type Schemas = components["schemas"];

const kinds: Record<Schemas["OperationKind"], string> = {
  "stream.create": "Create stream",
  "stream.start": "Start stream",
  "stream.stop": "Stop stream",
  "stream.retry": "Retry stream",
  "stream.delete": "Delete stream",
  "destination.add": "Add destination",
  "destination.start": "Resume destination",
  "destination.stop": "Pause destination",
  "destination.retry": "Retry destination",
  "destination.drop": "Drop destination",
  "table.copy": "Copy table again",
  "index.create": "Create index",
  "index.drop": "Drop index",
};

/** With the table, where it is about one. */
export const operationTitle = ({
  kind,
  target,
}: {
  kind: Schemas["OperationKind"];
  target: { table?: string | null };
}): string => (target.table ? `${operationKind(kind)}: ${target.table}` : operationKind(kind));

/** The target of an operation: the stream, and of several destinations the one. */
export const operationTarget = ({
  target,
}: {
  target: { name: string; destination?: string | null };
}): string => (target.destination ? `${target.name} → ${target.destination}` : target.name);

export const operationKind = (kind: Schemas["OperationKind"]): string => kinds[kind];

export const isUnfinished = ({ state }: { state: Schemas["OperationState"] }): boolean =>
  state === "pending" || state === "running";
