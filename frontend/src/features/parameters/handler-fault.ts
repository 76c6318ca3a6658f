// Faults of conflict handlers, apart from any widget.
import type { ConflictHandler } from "@/api/types";

type Action = ConflictHandler["action"];
type Kind = ConflictHandler["kind"];

const OVERWRITES = new Set<Kind>([
  "insert_exists",
  "update_missing",
  "update_origin_differs",
  "delete_origin_differs",
]);
const COMPARES = new Set<Action>(["maximum", "minimum", "latest", "priority"]);
const BY_COLUMN = new Set<Action>(["delta", "append", "merge", "expression"]);

/** One of the two rows wins, by the values of a column. */
export function comparesRows(action: Action): boolean {
  return COMPARES.has(action);
}

/** Conflicts in which both rows are there. */
export function hasTwoRows(kind: Kind): boolean {
  return kind === "insert_exists" || kind === "update_origin_differs";
}

/** Why a handler cannot be kept, or null. */
export function handlerFault(handler: ConflictHandler, before: ConflictHandler[] = []): string | null {
  const { kind, schema, table, action, columns = [], by } = handler;
  if ((schema === undefined) !== (table === undefined)) return "Name the schema and the table together.";
  if (action === "delta" && kind !== "update_origin_differs")
    return "Only an UPDATE of a row that was changed has an old value to which a difference can be added.";
  if ((comparesRows(action) || BY_COLUMN.has(action)) && !hasTwoRows(kind))
    return "Only an INSERT of a row that is there, or an UPDATE of a row that was changed, has two rows.";
  if (columns.length > 0 && !hasTwoRows(kind))
    return "Only an INSERT of a row that is there, or an UPDATE of a row that was changed, is decided by columns.";
  if ((columns.length > 0 || by !== undefined) && table === undefined)
    return "Columns belong to one table: name the table.";
  return ownFault(handler) ?? besideOthers(handler, before);
}

/** The members that only some actions have, and need. */
function ownFault({
  kind,
  action,
  columns = [],
  by,
  order = [],
  expression,
}: ConflictHandler): string | null {
  if (action === "delta" && columns.length === 0) return "Name the columns to which the difference is added.";
  if (BY_COLUMN.has(action) && columns.length === 0) return "Name the columns that this handler decides.";
  if (comparesRows(action) && action !== "latest" && by === undefined) return "Name the column that decides.";
  if (action === "priority" && order.length === 0) return "List the values of the column, the best first.";
  if (new Set(order).size < order.length) return "Name each value once.";
  if (action === "expression" && columns.length > 1)
    return "Name one column: each needs an expression of its own.";
  if (action === "expression" && !expression) return "Write what the column gets.";
  if (action === "overwrite" && !OVERWRITES.has(kind))
    return "There is nothing to overwrite: only a row that is there, or that an UPDATE lacks, can be.";
  return null;
}

function besideOthers(handler: ConflictHandler, before: ConflictHandler[]): string | null {
  const { kind, schema, table, action, columns = [], by } = handler;
  const ofKind = before.filter((earlier) => earlier.kind === kind);
  const isOfTable = (earlier: ConflictHandler) => earlier.schema === schema && earlier.table === table;
  if (
    ofKind.some((earlier) => !earlier.columns?.length && (earlier.table === undefined || isOfTable(earlier)))
  )
    return columns.length > 0
      ? "A handler above decides about all columns: move it below this one."
      : "A handler above decides about the same rows: this one would never be used.";
  const groups = ofKind.filter(
    (earlier) => earlier.columns?.length && (table === undefined || isOfTable(earlier)),
  );
  if (action === "latest" && by === undefined && (columns.length > 0 || groups.length > 0))
    return "Name the column that decides: next to handlers for columns, the commit time cannot decide.";
  const taken = groups.flatMap((group) => group.columns ?? []);
  const shared = columns.find((column) => taken.includes(column));
  return shared === undefined ? null : `A handler above decides about ${shared}.`;
}
