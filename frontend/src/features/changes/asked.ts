// The form of a search, and the request that it makes.
import type { SearchCreate } from "@/api/types";

export const RANGES = [
  { value: "900", label: "Last 15 min" },
  { value: "3600", label: "Last hour" },
  { value: "86400", label: "Last 24 h" },
  { value: "all", label: "All that is kept" },
  { value: "between", label: "Between …" },
];

/** Changes at which a search ends. */
const LIMIT = 1000;

export interface KeyPart {
  column: string;
  value: string;
}

export interface Asked {
  /** As written: schema.table, quoted as in SQL where it must be. Empty: any. */
  table: string;
  key: KeyPart[];
  /** Of RANGES: seconds until now, all, or between the two times. */
  range: string;
  /** Local times of <input type="datetime-local">. */
  from: string;
  to: string;
  xid: string;
}

export const NOTHING: Asked = {
  table: "",
  key: [{ column: "", value: "" }],
  range: "86400",
  from: "",
  to: "",
  xid: "",
};

const QUOTED = '"(?:[^"]|"")+"';
const NAME = new RegExp(`^(${QUOTED}|[^".]+)\\.(${QUOTED}|[^"]+)$`);

const unquoted = (part: string) => (part.startsWith('"') ? part.slice(1, -1).replaceAll('""', '"') : part);
const quoted = (part: string) => (/[".]/.test(part) ? `"${part.replaceAll('"', '""')}"` : part);

export function tableNamed(text: string): { schema: string; table: string } | null {
  const [, schema, table] = NAME.exec(text.trim()) ?? [];
  return schema && table ? { schema: unquoted(schema), table: unquoted(table) } : null;
}

export function nameOf({ schema, table }: { schema: string; table: string }): string {
  return `${quoted(schema)}.${quoted(table)}`;
}

export interface Faults {
  table?: string;
  key?: string;
  from?: string;
  to?: string;
  xid?: string;
}

export function faultsOf({ table, key, range, from, to, xid }: Asked): Faults {
  const faults: Faults = {};
  if (table.trim() && !tableNamed(table)) faults.table = "Write schema.table, for example public.orders.";
  const named = key.filter(({ column }) => column.trim());
  if (named.length > 0 && !table.trim()) faults.table = "A key belongs to a table: name it.";
  if (key.some(({ column, value }) => value && !column.trim())) faults.key = "Name the column of the value.";
  if (new Set(named.map(({ column }) => column.trim())).size < named.length)
    faults.key = "Name each column once.";
  if (xid.trim() && !(/^\d{1,10}$/.test(xid.trim()) && Number(xid) >= 1 && Number(xid) < 2 ** 32))
    faults.xid = "A number from 1 to 4294967295.";
  if (range === "between") {
    if (from && to && !(new Date(from) < new Date(to))) faults.to = "It must be later than the beginning.";
    if (!from && !to) faults.from = "Give a beginning or an end.";
  }
  return faults;
}

/** Of a form without faults. */
export function bodyOf(asked: Asked, streamId: string | null, now = Date.now()): SearchCreate {
  const table = tableNamed(asked.table);
  const named = asked.key.filter(({ column }) => column.trim());
  const seconds = Number(asked.range);
  const time = (local: string) => (local ? new Date(local).toISOString() : undefined);
  return {
    limit: LIMIT,
    ...(streamId && { stream_id: streamId }),
    ...(table && { table }),
    ...(named.length > 0 && {
      key: Object.fromEntries(named.map(({ column, value }) => [column.trim(), value])),
    }),
    ...(asked.xid.trim() && { xid: Number(asked.xid) }),
    ...(seconds > 0 && { from_time: new Date(now - seconds * 1000).toISOString() }),
    ...(asked.range === "between" && { from_time: time(asked.from), to_time: time(asked.to) }),
  };
}
