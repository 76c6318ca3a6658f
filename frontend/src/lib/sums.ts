import type { Maybe, Quantity } from "./format";

/** What is known of a sum: a lower bound while a part is unknown; null where no part is known (docs/concepts.md). */
export interface KnownSum {
  value: number | null;
  atLeast: boolean;
}

export function knownSum(parts: Maybe[]): KnownSum {
  const known = parts.filter((part): part is number => part !== null && part !== undefined);
  if (known.length === 0) return { value: null, atLeast: false };
  return { value: known.reduce((sum, part) => sum + part, 0), atLeast: known.length < parts.length };
}

/** A sum as it is shown: with ≥ where it is a lower bound. */
export function sumQuantity({ value, atLeast }: KnownSum, inWords: (value: Maybe) => Quantity): Quantity {
  const quantity = inWords(value);
  return atLeast ? { ...quantity, value: `≥ ${quantity.value}` } : quantity;
}
