import { Select, Stack, Text } from "@mantine/core";
import { useState } from "react";
import type { OnError, ScopedRules } from "@/api/types";
import { type Column, DataTable } from "@/ui/data-table";
import { policies } from "./rule-drafts";
import { type RuleInForce, rulesConcerning, rulesInForce, scopeInWords, type TableName } from "./rule-scopes";

/** `owner`: whose rules they are, the stream or a destination. */
export interface OwnedRules {
  owner: string;
  rules: ScopedRules[];
}

interface Row extends RuleInForce {
  owner: string;
}

const policyInWords = (policy: OnError | undefined) =>
  (policies.find(({ value }) => value === policy) ?? policies[0])?.label;

const name = ({ schema, table }: TableName) => `${schema}.${table}`;

const columns: Column<Row>[] = [
  { key: "rule", header: "Rule", cell: ({ rule }) => rule.name },
  {
    key: "of",
    header: "Of",
    definition: "The owner of the rule: the stream or a destination.",
    cell: ({ owner }) => owner,
  },
  {
    key: "from",
    header: "From",
    definition: "The scope of the rule: the table, its schema, or all tables.",
    cell: ({ place }) => scopeInWords[place.scope],
  },
  {
    key: "set",
    header: "Kind",
    definition:
      "A subset rule is a positive rule that follows its rows: an update that brings a row in becomes an insert, one that takes a row out becomes a delete.",
    cell: ({ rule, positive }) => (rule.subset ? "subset" : positive ? "positive" : "negative"),
  },
  { key: "operations", header: "Operations", cell: ({ rule }) => rule.operations?.join(", ") ?? "all" },
  {
    key: "condition",
    header: "Condition",
    cell: ({ rule }) => (rule.condition ? <code>{rule.condition}</code> : "always"),
  },
  {
    key: "policy",
    header: "If it cannot be evaluated",
    definition: "For changes that lack a value which the condition needs, or for which it fails.",
    cell: ({ rule }) => (rule.condition ? policyInWords(rule.on_error) : "–"),
  },
];

/** The rules that decide for one table, from all scopes. */
export function RulesInForce({ tables, owned }: { tables: TableName[]; owned: OwnedRules[] }) {
  const [chosen, setChosen] = useState<string | null>(null);
  const table = tables.find((candidate) => name(candidate) === chosen);
  const rows = table
    ? owned.flatMap(({ owner, rules }) => rulesInForce(rules, table).map((rule) => ({ ...rule, owner })))
    : [];
  // A positive set without a rule has no line of its own.
  const closed = table
    ? owned.filter(({ rules }) => {
        const sets = rulesConcerning(rules, table).flatMap(({ positive }) => (positive ? [positive] : []));
        return sets.length > 0 && sets.every((set) => set.length === 0);
      })
    : [];
  return (
    <Stack gap={6} mt="xs">
      <Select
        label="Rules in force"
        placeholder="Choose a table"
        searchable
        clearable
        limit={100}
        maw={320}
        data={tables.map(name)}
        value={chosen}
        onChange={setChosen}
      />
      {closed.map(({ owner }) => (
        <Text key={owner} size="sm">
          Nothing passes the rules of {owner}.
        </Text>
      ))}
      {table && rows.length === 0 && closed.length === 0 && (
        <Text size="sm" c="dimmed">
          No rule applies to {name(table)}: all its rows and changes are replicated.
        </Text>
      )}
      {rows.length > 0 && (
        <DataTable
          label={`Rules in force for ${chosen}`}
          columns={columns}
          rows={rows}
          rowKey={({ owner, rule }) => `${owner} ${rule.name}`}
          maxHeight={320}
        />
      )}
    </Stack>
  );
}
