type State = Record<string, unknown> | null | undefined;

export interface ChangedField {
  field: string;
  before: string | null;
  after: string | null;
}

const text = (value: unknown): string | null =>
  value === undefined ? null : typeof value === "string" ? value : JSON.stringify(value);

/** Fields that differ between two states of a resource; all of them when one state is missing. */
export function changedFields(before: State, after: State): ChangedField[] {
  const fields = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])].sort();
  return fields
    .map((field) => ({ field, before: text(before?.[field]), after: text(after?.[field]) }))
    .filter((change) => change.before !== change.after);
}
