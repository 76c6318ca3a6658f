import { Chip, Group, Stack, Text } from "@mantine/core";
import type { SourceTable, TableRules } from "@/api/types";
import { formatCount } from "@/lib/format";
import { hasSchema, withSchema } from "./matching";

interface SchemaChipsProps {
  tables: SourceTable[];
  rules: TableRules;
  onChange: (rules: TableRules) => void;
}

/** Whole schemas by a click; the rules below say what that means. A partition belongs to its table: it is not counted. */
export function SchemaChips({ tables, rules, onChange }: SchemaChipsProps) {
  const counts = new Map<string, number>();
  for (const { schema, kind } of tables)
    if (kind !== "partition") counts.set(schema, (counts.get(schema) ?? 0) + 1);
  if (counts.size === 0) return null;
  return (
    <Stack gap={6} mb="md">
      <Text size="xs" c="dimmed">
        All tables of these schemas
      </Text>
      <Group gap={6} role="group" aria-label="Schemas">
        {[...counts].sort().map(([schema, count]) => (
          <Chip
            key={schema}
            size="sm"
            checked={hasSchema(rules, schema)}
            onChange={(checked) => onChange(withSchema(rules, schema, checked))}
          >
            {schema} ({formatCount(count)})
          </Chip>
        ))}
      </Group>
    </Stack>
  );
}
