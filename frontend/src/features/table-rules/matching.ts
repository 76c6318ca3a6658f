// Table rules as the API reads them: `*` any characters, `?` one, case matters; a table is replicated when an include
// pattern matches it and no exclude pattern does. The API's preview decides; this gives the picker its immediate answer.
import type { ScopedRules, TablePattern, TableRules } from "@/api/types";
import { isComplete, withoutRename } from "./renames";
import { isSamePlace, ofTable, type RulePlace, type TableName } from "./rule-scopes";
import { withTransformations } from "./transformation-drafts";

/** Linear in pattern × name, whatever the pattern: no regular expression that a pattern could blow up. */
export function patternMatches(pattern: string, name: string): boolean {
  const wanted = [...pattern];
  const given = [...name];
  let p = 0;
  let n = 0;
  let star = -1;
  let retry = 0;
  while (n < given.length) {
    if (p < wanted.length && wanted[p] === "*") {
      star = p++;
      retry = n;
    } else if (p < wanted.length && (wanted[p] === "?" || wanted[p] === given[n])) {
      p++;
      n++;
    } else if (star >= 0) {
      p = star + 1;
      n = ++retry;
    } else return false;
  }
  while (wanted[p] === "*") p++;
  return p === wanted.length;
}

export function ruleMatches(rule: TablePattern, { schema, table }: TableName): boolean {
  return patternMatches(rule.schema, schema) && patternMatches(rule.table ?? "*", table);
}

export function isSelected(rules: TableRules, table: TableName): boolean {
  if (rules.exclude?.some((rule) => ruleMatches(rule, table))) return false;
  return rules.include.some((rule) => ruleMatches(rule, table));
}

const names = (rule: TablePattern, { schema, table }: TableName) =>
  rule.schema === schema && rule.table === table;

/** The rules with one table switched: an exact rule comes or goes, patterns stay as they are. */
export function toggled(rules: TableRules, table: TableName): TableRules {
  const include = rules.include;
  const exclude = rules.exclude ?? [];
  const exact = { schema: table.schema, table: table.table };
  if (isSelected(rules, table)) {
    const without = {
      ...withTransformations(
        withoutRename(withRowRules(withInsertsOnly(rules, table, false), ofTable(table), null), table),
        table,
        [],
      ),
      include: include.filter((rule) => !names(rule, table)),
      exclude,
    };
    return isSelected(without, table) ? { ...without, exclude: [...exclude, exact] } : without;
  }
  const without = { ...rules, include, exclude: exclude.filter((rule) => !names(rule, table)) };
  if (isSelected(without, table)) return without;
  const included = { ...without, include: [...include, exact] };
  // An exclude pattern still stands in the way: switching one table on must not drop a pattern somebody wrote.
  return isSelected(included, table) ? included : rules;
}

/** Rules as they are sent: what is not filled in yet is left out. */
export function completeRules(rules: TableRules): TableRules {
  const filled = (rule: TablePattern) => rule.schema !== "" && rule.table !== "";
  const renames = (rules.renames ?? []).filter(isComplete);
  const complete = { include: rules.include.filter(filled), exclude: (rules.exclude ?? []).filter(filled) };
  return {
    ...complete,
    ...(rules.inserts_only?.length ? { inserts_only: rules.inserts_only } : {}),
    ...(rules.row_rules?.length ? { row_rules: rules.row_rules } : {}),
    ...(rules.transformations?.length ? { transformations: rules.transformations } : {}),
    ...(renames.length > 0 ? { renames } : {}),
  };
}

/** Whether the table's updates and deletes are given up. */
export function takesInsertsOnly(rules: TableRules, table: TableName): boolean {
  return rules.inserts_only?.some((ref) => names(ref, table)) ?? false;
}

/** The rules with a table's updates and deletes given up, or wanted. */
export function withInsertsOnly(rules: TableRules, table: TableName, wanted: boolean): TableRules {
  if (!wanted && !takesInsertsOnly(rules, table)) return rules;
  const others = (rules.inserts_only ?? []).filter((ref) => !names(ref, table));
  const own = { schema: table.schema, table: table.table };
  return { ...rules, inserts_only: wanted ? [...others, own] : others };
}

/** The rules of rows of one place itself. */
export function rowRulesOf(rules: TableRules, place: RulePlace): ScopedRules | undefined {
  return rules.row_rules?.find((own) => isSamePlace(own, place));
}

/** The rules with others for a place's rows; null: with none. */
export function withRowRules(rules: TableRules, place: RulePlace, own: ScopedRules | null): TableRules {
  if (!own && !rowRulesOf(rules, place)) return rules;
  const others = (rules.row_rules ?? []).filter((other) => !isSamePlace(other, place));
  return { ...rules, row_rules: own ? [...others, own] : others };
}

const wholeSchema = (schema: string, rule: TablePattern) =>
  rule.schema === schema && (rule.table ?? "*") === "*";

/** Whether a rule of its own includes all tables of a schema. */
export function hasSchema(rules: TableRules, schema: string): boolean {
  return rules.include.some((rule) => wholeSchema(schema, rule));
}

/** The rules with a whole schema switched on or off; rules about single tables stay. */
export function withSchema(rules: TableRules, schema: string, wanted: boolean): TableRules {
  const include = rules.include.filter((rule) => !wholeSchema(schema, rule));
  return { ...rules, include: wanted ? [...include, { schema, table: "*" }] : include };
}
