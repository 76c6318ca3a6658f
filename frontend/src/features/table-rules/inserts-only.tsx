import { Checkbox, Fieldset, Stack, Text } from "@mantine/core";
import type { SourceTable, TableRules } from "@/api/types";
import { takesInsertsOnly, withInsertsOnly } from "./matching";

interface InsertsOnlyProps {
  /** Those that the rules match. */
  tables: SourceTable[];
  rules: TableRules;
  onChange: (rules: TableRules) => void;
}

const name = ({ schema, table }: { schema: string; table: string }) => `${schema}.${table}`;

/** Tables whose rows nothing tells apart: each may give up its updates and deletes. */
export function InsertsOnly({ tables, rules, onChange }: InsertsOnlyProps) {
  const asked = tables.filter((table) => !table.identified || takesInsertsOnly(rules, table));
  if (asked.length === 0) return null;
  return (
    <Fieldset legend="Inserts only" mt="xs" p="xs">
      <Text size="xs" c="dimmed">
        The rows of these tables have no key, so their updates and deletes cannot be replicated. Add a key at
        the source, or give up updates and deletes: Thalweg then replicates only inserts and truncates, and
        the destination keeps rows that the source has changed or deleted.
      </Text>
      <Stack gap={6} mt={6}>
        {asked.map((table) => (
          <Checkbox
            key={name(table)}
            size="sm"
            label={`Give up updates and deletes of ${name(table)}`}
            checked={takesInsertsOnly(rules, table)}
            onChange={(event) => onChange(withInsertsOnly(rules, table, event.currentTarget.checked))}
          />
        ))}
      </Stack>
    </Fieldset>
  );
}
