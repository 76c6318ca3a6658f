// What each kind of operation is called, wherever one is shown.
const kinds: Record<string, string> = {
  "stream.create": "Create stream",
  "stream.start": "Start stream",
  "stream.stop": "Stop stream",
  "stream.retry": "Retry stream",
  "stream.delete": "Delete stream",
  "destination.add": "Add destination",
  "destination.start": "Start destination",
  "destination.stop": "Stop destination",
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
  kind: string;
  target: { table?: string | null };
}): string => (target.table ? `${operationKind(kind)}: ${target.table}` : operationKind(kind));

export const operationKind = (kind: string): string => kinds[kind] ?? kind;

export const isUnfinished = ({ state }: { state: string }): boolean =>
  state === "pending" || state === "running";
