// Scopes of rules: a table, a schema, or all tables. All rules that concern a table decide together.
import type { RowRule, RuleScope, ScopedRules } from "@/api/types";

export interface TableName {
  schema: string;
  table: string;
}

/** A table, a schema, or all tables: each has its list of rules. */
export interface RulePlace {
  scope: RuleScope;
  schema?: string | null;
  table?: string | null;
}

export const everywhere: RulePlace = { scope: "global" };
export const ofSchema = (schema: string): RulePlace => ({ scope: "schema", schema });
export const ofTable = ({ schema, table }: TableName): RulePlace => ({ scope: "table", schema, table });

export function placeInWords({ schema, table }: Omit<RulePlace, "scope">): string {
  if (schema && table) return `${schema}.${table}`;
  return schema ? `the schema ${schema}` : "all tables";
}

export const isSamePlace = (place: Omit<RulePlace, "scope">, other: Omit<RulePlace, "scope">) =>
  (place.schema ?? null) === (other.schema ?? null) && (place.table ?? null) === (other.table ?? null);

export const concerns = (place: Omit<RulePlace, "scope">, { schema, table }: TableName) =>
  (place.schema ?? schema) === schema && (place.table ?? table) === table;

/** Whether there can be a table that both concern. */
export const overlap = (place: RulePlace, other: RulePlace) =>
  (place.schema ?? other.schema ?? null) === (other.schema ?? place.schema ?? null) &&
  (place.table ?? other.table ?? null) === (other.table ?? place.table ?? null);

/** Those of a table, its own first, as the engine is told of them. */
export function rulesConcerning(rules: readonly ScopedRules[], table: TableName): ScopedRules[] {
  const places = [ofTable(table), ofSchema(table.schema), everywhere];
  return places.flatMap((place) => rules.filter((own) => isSamePlace(own, place)));
}

export interface RuleInForce {
  rule: RowRule;
  positive: boolean;
  place: RulePlace;
}

export function rulesInForce(rules: readonly ScopedRules[], table: TableName): RuleInForce[] {
  const ofSet = (member: "positive" | "negative") =>
    rulesConcerning(rules, table).flatMap((place) =>
      (place[member] ?? []).map((rule) => ({ rule, positive: member === "positive", place })),
    );
  return [...ofSet("positive"), ...ofSet("negative")];
}

export const scopeInWords: Record<RuleScope, string> = {
  table: "the table",
  schema: "its schema",
  global: "all tables",
};
