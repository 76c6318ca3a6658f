// Errors of one cause are told once, with the names of the destinations that have it.

interface Caused {
  code: string;
  side?: string | null;
  cure: string | null;
  sqlstate?: string | null;
  table?: string | null;
}

interface Failing<E> {
  id: string;
  database: { name: string };
  error: E | null;
}

export interface Cause<E> {
  /** The first destination's. */
  error: E;
  at: { id: string; name: string; error: E }[];
}

/** Messages name the destination, its backlog or a row: they differ although the cause does not. */
function causeKey({ code, side, cure, sqlstate, table }: Caused): string {
  return [code, side, cure, sqlstate, table].map((part) => part ?? "").join("\n");
}

export function haveOneCause(left: Caused | null, right: Caused | null): boolean {
  return left !== null && right !== null && causeKey(left) === causeKey(right);
}

/** The destinations' errors, each cause once, in the order of the destinations. */
export function causesOf<E extends Caused>(destinations: readonly Failing<E>[]): Cause<E>[] {
  const causes = new Map<string, Cause<E>>();
  for (const { id, database, error } of destinations) {
    if (!error) continue;
    const key = causeKey(error);
    const known = causes.get(key) ?? { error, at: [] };
    known.at.push({ id, name: database.name, error });
    causes.set(key, known);
  }
  return [...causes.values()];
}
