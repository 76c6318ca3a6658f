import { Button, Fieldset, Group, Modal, Select, Stack, Text } from "@mantine/core";
import { IconPencil } from "@tabler/icons-react";
import { useState } from "react";
import type { TableRowRules, TableRules } from "@/api/types";
import { rowRulesOf, takesInsertsOnly, withRowRules } from "./matching";
import { RowRulesEditor } from "./row-rules-editor";

interface TableName {
  schema: string;
  table: string;
}

interface RowRulesProps {
  sourceId: string;
  /** The engine that captures; null: the only one. */
  captureEngineId: string | null;
  /** Those that may have rules. */
  tables: TableName[];
  rules: TableRules;
  onChange: (rules: TableRules) => void;
}

const name = ({ schema, table }: TableName) => `${schema}.${table}`;

function summary({ positive, negative }: TableRowRules): string {
  const all = [...(positive ?? []), ...(negative ?? [])];
  if (all.length === 0) return "nothing passes";
  return all.map((rule) => rule.name).join(", ");
}

/** Rules for the rows of single tables: the tables that have any, and a way to the editor for the others. */
export function RowRules({ sourceId, captureEngineId, tables, rules, onChange }: RowRulesProps) {
  const [edited, setEdited] = useState<TableName | null>(null);
  const ruled = rules.row_rules ?? [];
  const others = tables.filter((table) => !rowRulesOf(rules, table));
  if (tables.length === 0 && ruled.length === 0) return null;
  return (
    <Fieldset legend="Rows" mt="xs" p="xs">
      <Text size="xs" c="dimmed">
        All rows and changes of a table are replicated, unless it has rules that decide which.
      </Text>
      <Stack gap={6} mt={6}>
        {ruled.map((tableRules) => (
          <Group key={name(tableRules)} gap="xs" wrap="nowrap">
            <Button
              size="compact-sm"
              variant="default"
              leftSection={<IconPencil size={13} aria-hidden />}
              aria-label={`Rules of ${name(tableRules)}`}
              onClick={() => setEdited(tableRules)}
            >
              Rules
            </Button>
            <Text size="sm" style={{ overflowWrap: "anywhere" }}>
              {name(tableRules)}:{" "}
              <Text span c="dimmed">
                {summary(tableRules)}
              </Text>
            </Text>
          </Group>
        ))}
        {others.length > 0 && (
          <Select
            aria-label="Give a table rules"
            placeholder="Give a table rules"
            searchable
            limit={100}
            maw={320}
            data={others.map(name)}
            value={null}
            onChange={(chosen) => setEdited(others.find((table) => name(table) === chosen) ?? null)}
          />
        )}
      </Stack>
      <Modal
        opened={edited !== null}
        onClose={() => setEdited(null)}
        title={edited ? `Rules of ${name(edited)}` : ""}
        size="xl"
      >
        {edited && (
          <RowRulesEditor
            sourceId={sourceId}
            captureEngineId={captureEngineId}
            table={{ schema: edited.schema, table: edited.table }}
            insertsOnly={takesInsertsOnly(rules, edited)}
            own={rowRulesOf(rules, edited)}
            onClose={() => setEdited(null)}
            onSave={(own) => {
              onChange(withRowRules(rules, edited, own));
              setEdited(null);
            }}
          />
        )}
      </Modal>
    </Fieldset>
  );
}
