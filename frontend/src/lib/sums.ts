import { asText, compactCount, formatAgo, type Maybe, type Quantity, rows } from "./format";

/** A sum as far as known: a lower bound while a part is unknown; null where no part is known (docs/concepts.md). */
export interface KnownSum {
  value: number | null;
  atLeast: boolean;
}

export function knownSum(parts: Maybe[]): KnownSum {
  const known = parts.filter((part): part is number => part !== null && part !== undefined);
  if (known.length === 0) return { value: null, atLeast: false };
  return { value: known.reduce((sum, part) => sum + part, 0), atLeast: known.length < parts.length };
}

/** The whole sum, null while a part is unknown. */
export function exactSum({ value, atLeast }: KnownSum): number | null {
  return atLeast ? null : value;
}

/** A sum as it is shown: with ≥ where it is a lower bound. That it is 0 or more says nothing. */
export function sumQuantity({ value, atLeast }: KnownSum, inWords: (value: Maybe) => Quantity): Quantity {
  if (atLeast && value === 0) return inWords(null);
  const quantity = inWords(value);
  return atLeast ? { ...quantity, value: `≥ ${quantity.value}` } : quantity;
}

/** The rows that tables have together, as statistics say: a lower bound while one was never analysed. */
export function estimatedRows(tables: readonly { rows_estimated: number | null }[]): string {
  if (tables.length === 0) return "no rows";
  const { value, atLeast } = knownSum(tables.map(({ rows_estimated }) => rows_estimated));
  if (value === null) return "an unknown number of rows";
  return `${atLeast ? "at least" : "about"} ${asText(rows(value))}`;
}

interface Parking {
  destinations: readonly { error_queue_transactions: Maybe }[];
}

/** Transactions in the error queues of a stream: a lower bound while nothing applies at one of its destinations. */
export function parkedSum({ destinations }: Parking): KnownSum {
  return knownSum(destinations.map(({ error_queue_transactions }) => error_queue_transactions));
}

export function parkedOf(stream: Parking): Quantity {
  return sumQuantity(parkedSum(stream), (sum) => compactCount(sum, "txn"));
}

/** Since when the oldest transaction is parked, in words; null where none is, or nobody knows. */
export function oldestParked(queues: readonly { error_queue_oldest_at: string | null }[]): string | null {
  const [oldest] = queues
    .map(({ error_queue_oldest_at }) => error_queue_oldest_at)
    .filter((at) => typeof at === "string")
    .sort((a, b) => Date.parse(a) - Date.parse(b));
  return oldest ? `oldest ${formatAgo(oldest)}` : null;
}
