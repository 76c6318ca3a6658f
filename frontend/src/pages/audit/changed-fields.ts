import { formatTime } from "@/lib/format";

type State = Record<string, unknown> | null | undefined;

export interface ChangedField {
  field: string;
  before: string | null;
  after: string | null;
}

const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/;

function text(value: unknown): string | null {
  if (value === undefined) return null;
  if (typeof value !== "string") return JSON.stringify(value);
  return TIME.test(value) ? formatTime(value) : value;
}

/** Fields that differ between two states of a resource; all of them when one state is missing. */
export function changedFields(before: State, after: State): ChangedField[] {
  const fields = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])].sort();
  return fields
    .map((field) => ({ field, before: text(before?.[field]), after: text(after?.[field]) }))
    .filter((change) => change.before !== change.after);
}
