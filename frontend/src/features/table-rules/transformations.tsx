import { Button, Fieldset, Group, Modal, Select, Stack, Text } from "@mantine/core";
import { IconPencil } from "@tabler/icons-react";
import { useState } from "react";
import type { TableRules } from "@/api/types";
import { type MaskKey, MaskKeyField } from "./mask-key-field";
import type { TableName } from "./rule-scopes";
import { stepInWords, transformationsOf, withTransformations } from "./transformation-drafts";
import { TransformationsEditor } from "./transformations-editor";

interface TransformationsProps {
  sourceId: string;
  /** Those that may have transformations. */
  tables: TableName[];
  rules: TableRules;
  onChange: (rules: TableRules) => void;
  maskKey: MaskKey;
}

const nameOf = ({ schema, table }: TableName) => `${schema}.${table}`;

/** Columns that are dropped, renamed or masked: the tables that have any such, and a way to the editor for others. */
export function Transformations({ sourceId, tables, rules, onChange, maskKey }: TransformationsProps) {
  const [edited, setEdited] = useState<TableName | null>(null);
  const transformed = rules.transformations ?? [];
  if (tables.length === 0 && transformed.length === 0) return null;
  const free = tables.filter((table) => !transformationsOf(rules, table));
  return (
    <Fieldset legend="Columns" mt="xs" p="xs">
      <Text size="xs" c="dimmed">
        All columns are replicated as they are, unless transformations drop, rename, mask, cast or add some.
        Masked values stay at the source and in the engine that captures.
      </Text>
      <Stack gap={6} mt={6}>
        {transformed.map((own) => (
          <Group key={nameOf(own)} gap="xs" wrap="nowrap">
            <Button
              size="compact-sm"
              variant="default"
              leftSection={<IconPencil size={13} aria-hidden />}
              aria-label={`Transformations of ${nameOf(own)}`}
              onClick={() => setEdited(own)}
            >
              Transformations
            </Button>
            <Text size="sm" style={{ overflowWrap: "anywhere" }}>
              {nameOf(own)}:{" "}
              <Text span c="dimmed">
                {own.steps.map(stepInWords).join(", ")}
              </Text>
            </Text>
          </Group>
        ))}
        {free.length > 0 && (
          <Select
            aria-label="Transform a table's columns"
            placeholder="Transform a table's columns"
            searchable
            limit={100}
            maw={320}
            data={free.map(nameOf)}
            value={null}
            onChange={(chosen) => setEdited(free.find((table) => nameOf(table) === chosen) ?? null)}
          />
        )}
        <MaskKeyField rules={rules} {...maskKey} />
      </Stack>
      <Modal
        opened={edited !== null}
        onClose={() => setEdited(null)}
        title={edited ? `Transformations of ${nameOf(edited)}` : ""}
        size="xl"
      >
        {edited && (
          <TransformationsEditor
            sourceId={sourceId}
            table={edited}
            own={transformationsOf(rules, edited)}
            onClose={() => setEdited(null)}
            onSave={(steps) => {
              onChange(withTransformations(rules, edited, steps));
              setEdited(null);
            }}
          />
        )}
      </Modal>
    </Fieldset>
  );
}
