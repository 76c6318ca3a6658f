import { ActionIcon, Button, Group, Stack, TagsInput, Text, TextInput } from "@mantine/core";
import { IconTrash } from "@tabler/icons-react";
import type { ComparedTable } from "@/api/types";
import classes from "./error-policies.module.css";
import { withOptional } from "./optional-member";
import { comparedFault } from "./parameter-values";

interface ComparedTablesProps {
  tables: ComparedTable[];
  onChange: (tables: ComparedTable[]) => void;
  disabled?: boolean;
}

/** The tables whose rows are compared with what the source had before the change. */
export function ComparedTables({ tables, onChange, disabled }: ComparedTablesProps) {
  return (
    <Stack gap="xs" className={classes.list}>
      {tables.map((table, index) => {
        const fault = comparedFault(tables, index);
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: an entry has no other name than its place
          <Group key={index} component="fieldset" gap="xs" align="flex-start" className={classes.policy}>
            <legend className={classes.legend}>Compared table {index + 1}</legend>
            <Compared
              table={table}
              disabled={disabled}
              onChange={(changed) => onChange(tables.with(index, changed))}
            />
            <ActionIcon
              variant="subtle"
              ml="auto"
              aria-label={`Remove compared table ${index + 1}`}
              disabled={disabled}
              onClick={() => onChange(tables.toSpliced(index, 1))}
            >
              <IconTrash size={14} aria-hidden />
            </ActionIcon>
            {fault && (
              <Text size="xs" c="var(--bad)" w="100%">
                {fault}
              </Text>
            )}
          </Group>
        );
      })}
      <Button
        variant="default"
        size="xs"
        disabled={disabled}
        onClick={() => onChange([...tables, {}])}
        style={{ alignSelf: "flex-start" }}
      >
        Compare a table
      </Button>
    </Stack>
  );
}

interface ComparedProps {
  table: ComparedTable;
  onChange: (table: ComparedTable) => void;
  disabled?: boolean;
}

function Compared({ table, onChange, disabled }: ComparedProps) {
  const name = (part: "schema" | "table", text: string) => onChange(withOptional(table, part, text));
  const choose = (columns: string[]) => onChange(withOptional(table, "columns", columns));
  return (
    <>
      <TextInput
        label="Schema"
        placeholder="any"
        w={110}
        value={table.schema ?? ""}
        disabled={disabled}
        onChange={(event) => name("schema", event.currentTarget.value)}
      />
      <TextInput
        label="Table"
        placeholder="any"
        w={140}
        value={table.table ?? ""}
        disabled={disabled}
        onChange={(event) => name("table", event.currentTarget.value)}
      />
      <TagsInput
        label="Columns"
        placeholder={table.columns === undefined ? "all" : undefined}
        w={320}
        value={table.columns ?? []}
        disabled={disabled}
        onChange={choose}
      />
    </>
  );
}
