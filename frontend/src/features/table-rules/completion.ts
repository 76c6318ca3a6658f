// Completion of a condition at its caret: columns, attributes, keywords and functions (docs/reference/rule-language.md).
import type { SourceColumn } from "@/api/types";

/** The word before the caret. */
export interface Place {
  /** Indices of the text; `to` is the caret's. */
  from: number;
  to: number;
  /** Without a quotation mark that it begins with. */
  typed: string;
  /** It stands behind `old.` or `new.` */
  ofRow: boolean;
}

export interface Suggestion {
  text: string;
  /** A column's type, or what else it is. */
  about: string;
}

const attributes = ["commit_time", "operation", "schema", "source", "table", "tag"];

/** Words that are written with brackets end with the opening one. */
export const keywords = [
  "AND",
  "AS",
  "BETWEEN",
  "BOTH",
  "CASE",
  "CAST(",
  "COALESCE(",
  "COLLATE",
  "DISTINCT",
  "ELSE",
  "END",
  "ESCAPE",
  "FALSE",
  "FOR",
  "FROM",
  "GREATEST(",
  "ILIKE",
  "IN",
  "IS",
  "ISNULL",
  "LEADING",
  "LEAST(",
  "LIKE",
  "NOT",
  "NOTNULL",
  "NULL",
  "NULLIF(",
  "OR",
  "PLACING",
  "SYMMETRIC",
  "THEN",
  "TRAILING",
  "TRIM(",
  "TRUE",
  "UNKNOWN",
  "WHEN",
];

export const functions = [
  "abs",
  "age",
  "ascii",
  "bit_count",
  "bit_length",
  "btrim",
  "ceil",
  "ceiling",
  "char_length",
  "character_length",
  "chr",
  "date_bin",
  "date_part",
  "date_trunc",
  "decode",
  "div",
  "encode",
  "extract",
  "floor",
  "gcd",
  "get_bit",
  "get_byte",
  "initcap",
  "isfinite",
  "jsonb_array_length",
  "jsonb_typeof",
  "justify_days",
  "justify_hours",
  "justify_interval",
  "lcm",
  "left",
  "length",
  "like_escape",
  "lower",
  "lpad",
  "ltrim",
  "make_date",
  "make_time",
  "make_timestamp",
  "md5",
  "min_scale",
  "mod",
  "octet_length",
  "overlay",
  "position",
  "repeat",
  "replace",
  "reverse",
  "right",
  "round",
  "rpad",
  "rtrim",
  "scale",
  "set_bit",
  "set_byte",
  "sha224",
  "sha256",
  "sha384",
  "sha512",
  "sign",
  "split_part",
  "sqrt",
  "starts_with",
  "strpos",
  "substr",
  "substring",
  "to_hex",
  "translate",
  "trim_scale",
  "trunc",
  "upper",
];

/** Words that would not be read as a column's name, or not surely so. */
const words = new Set(
  `and as between both case cast coalesce collate date distinct else end escape extract false from greatest ilike in
  interval is isnull leading least like new not notnull null nullif numeric old or placing position real substring symmetric text then
  time timestamp timestamptz trailing trim true unknown when`.split(/\s+/),
);

const SIMPLE_NAME = /^[a-z_][a-z0-9_$]*$/;
const WORD = /(?<![\p{L}\p{N}_$])[\p{L}_][\p{L}\p{N}_$]*$/u;
const ROW = /(?<![\p{L}\p{N}_$."])(?:old|new)\.$/iu;

/** Null: nothing that could be completed stands before the caret, as in a string. */
export function placeAt(condition: string, caret: number): Place | null {
  const before = condition.slice(0, caret);
  const quote = openQuote(before);
  if (quote && before[quote.at] === "'") return null;
  const from = quote ? quote.at : caret - (WORD.exec(before)?.[0].length ?? 0);
  const ofRow = ROW.test(before.slice(0, from));
  if (!ofRow && before[from - 1] === ".") return null;
  return { from, to: caret, typed: before.slice(quote ? from + 1 : from), ofRow };
}

/** Where a string or a name in quotes begins that has not ended. */
function openQuote(text: string): { at: number } | null {
  let at: number | null = null;
  for (let place = 0; place < text.length; place++) {
    const character = text[place];
    if (at === null && (character === "'" || character === '"')) at = place;
    else if (at !== null && character === text[at]) at = null;
  }
  return at === null ? null : { at };
}

/** Suggestions that begin with the word at the place, columns first. `readsRows`: the rule may tell the old row from the new. */
export function suggestionsAt(
  condition: string,
  { from, to, typed, ofRow }: Place,
  columns: SourceColumn[],
  readsRows: boolean,
): Suggestion[] {
  const suggestions: Suggestion[] = columns.map(({ name, type }) => ({
    text: asColumn(name, ofRow),
    about: type,
  }));
  if (!ofRow) {
    if (readsRows) {
      suggestions.push({ text: "old.", about: "the row before" }, { text: "new.", about: "the row after" });
    }
    const names = new Set(columns.map(({ name }) => name));
    const clear = attributes.filter((name) => !names.has(name)); // the language refuses the others
    suggestions.push(...clear.map((text) => ({ text, about: "attribute" })));
    suggestions.push(...keywords.map((text) => ({ text, about: "keyword" })));
    suggestions.push(...functions.map((name) => ({ text: `${name}(`, about: "function" })));
  }
  const wanted = typed.toLowerCase();
  const written = condition.slice(from, to);
  return suggestions.filter(({ text, about }) => {
    const bare = text.startsWith('"') ? text.slice(1) : text;
    const isThere = about === "keyword" ? text.toLowerCase() === wanted : text === written;
    return !isThere && bare.toLowerCase().startsWith(wanted);
  });
}

function asColumn(name: string, ofRow: boolean): string {
  const isClear = SIMPLE_NAME.test(name) && !words.has(name) && (ofRow || !attributes.includes(name));
  return isClear ? name : `"${name.replaceAll('"', '""')}"`;
}

/** The text with the suggestion at the place, and where the caret is then. */
export function completed(condition: string, { from, to }: Place, text: string) {
  return { condition: condition.slice(0, from) + text + condition.slice(to), caret: from + text.length };
}
