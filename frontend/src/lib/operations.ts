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
  "index.create": "Create index",
  "index.drop": "Drop index",
};

export const operationKind = (kind: string): string => kinds[kind] ?? kind;

export const isUnfinished = ({ state }: { state: string }): boolean =>
  state === "pending" || state === "running";
