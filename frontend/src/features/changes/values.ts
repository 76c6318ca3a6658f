// A change's values in words.
import type { Change, ChangedColumn, ChangedValue } from "@/api/types";

const SHOWN = 60;

export function valueInWords(value: ChangedValue | null): string {
  if (value === null) return "?";
  if (value.masked) return "masked";
  if (value.text === null) return "NULL";
  if (value.text === "") return "empty";
  const text = value.text.length > SHOWN ? value.text.slice(0, SHOWN) : value.text;
  return value.cut || text.length < value.text.length ? `${text}…` : text;
}

export function keyInWords({ columns }: Change): string {
  return columns
    .filter(({ key }) => key)
    .map(({ name, before, after }) => `${name} = ${valueInWords(after ?? before)}`)
    .join(", ");
}

/** Whether an update has given the column another value. Null: not known. */
export function differs({ before, after }: ChangedColumn): boolean | null {
  if (after === null) return false;
  if (before === null || before.masked || after.masked) return null;
  return before.text === after.text ? (before.cut ? null : false) : true;
}

/** The columns that a row of the list shows: those of an update that are not the same, else all but the key. */
export function shownColumns({ operation, columns }: Change): ChangedColumn[] {
  if (operation === "UPDATE") return columns.filter((column) => differs(column) !== false);
  return columns.filter(({ key, before, after }) => !key && (before ?? after) !== null);
}

export function columnInWords(
  operation: Change["operation"],
  { name, before, after }: ChangedColumn,
): string {
  if (operation !== "UPDATE") return `${name} = ${valueInWords(after ?? before)}`;
  if (after?.masked) return `${name}: masked`;
  return `${name}: ${valueInWords(before)} → ${valueInWords(after)}`;
}
