// Names of tables at the destinations, as the rules have them: of a table, or of all tables of a schema.
import type { Rename, TableRules } from "@/api/types";
import type { TableName } from "./rule-scopes";

const NAME_BYTES_MAX = 63;

export const renamedPlace = ({ schema, table }: Pick<Rename, "schema" | "table">): string =>
  `${schema}.${table ?? "*"}`;

const isOf = (rename: Rename, { schema, table }: Pick<Rename, "schema" | "table">) =>
  rename.schema === schema && (rename.table ?? null) === (table ?? null);

export function renameOf(rules: TableRules, place: Pick<Rename, "schema" | "table">): Rename | undefined {
  return rules.renames?.find((rename) => isOf(rename, place));
}

/** The rules with another rename of the same place. */
export function withRename(rules: TableRules, rename: Rename): TableRules {
  const renames = rules.renames ?? [];
  return renameOf(rules, rename)
    ? { ...rules, renames: renames.map((former) => (isOf(former, rename) ? rename : former)) }
    : { ...rules, renames: [...renames, rename] };
}

export function withoutRename(rules: TableRules, place: Pick<Rename, "schema" | "table">): TableRules {
  if (!renameOf(rules, place)) return rules;
  return { ...rules, renames: rules.renames?.filter((rename) => !isOf(rename, place)) };
}

/** Whether it says something: one that does not is not sent. */
export const isComplete = ({ to_schema, to_table }: Rename): boolean => Boolean(to_schema || to_table);

/** The table's name at the destinations: what its own entry does not say, its schema's does. */
export function nameThere(rules: TableRules, table: TableName): TableName {
  const own = renameOf(rules, table);
  const whole = renameOf(rules, { schema: table.schema, table: null });
  return {
    schema: own?.to_schema || whole?.to_schema || table.schema,
    table: own?.to_table || table.table,
  };
}

/** Why PostgreSQL cannot have the name. */
export function faultOfName(name: string | null | undefined): string | null {
  return name && new TextEncoder().encode(name).length > NAME_BYTES_MAX
    ? `At most ${NAME_BYTES_MAX} bytes.`
    : null;
}

export const renameInWords = (rename: Rename): string =>
  `${renamedPlace(rename)} → ${rename.to_schema || rename.schema}.${rename.table == null ? "*" : rename.to_table || rename.table}`;
