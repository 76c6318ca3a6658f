import { ActionIcon, Fieldset, Group, Select, Stack, Text, TextInput } from "@mantine/core";
import { IconX } from "@tabler/icons-react";
import type { Rename, TableRules } from "@/api/types";
import { HelpLink } from "@/ui/help-link";
import { faultOfName, nameThere, renamedPlace, renameOf, withoutRename, withRename } from "./renames";
import type { TableName } from "./rule-scopes";

interface NamesThereProps {
  /** Those that the rules match. */
  tables: TableName[];
  rules: TableRules;
  onChange: (rules: TableRules) => void;
}

/** Tables and schemas that have other names at the destinations. */
export function NamesThere({ tables, rules, onChange }: NamesThereProps) {
  const renames = rules.renames ?? [];
  if (tables.length === 0 && renames.length === 0) return null;
  const schemas = [...new Set(tables.map(({ schema }) => schema))].map((schema) => ({ schema, table: null }));
  const free = [...schemas, ...tables].filter((place) => !renameOf(rules, place));
  const add = (chosen: string | null) => {
    const place = free.find((place) => renamedPlace(place) === chosen);
    if (place)
      onChange(
        withRename(rules, { schema: place.schema, table: place.table, to_schema: null, to_table: null }),
      );
  };
  return (
    <Fieldset legend="Names at the destinations" mt="xs" p="xs">
      <Text size="xs" c="dimmed">
        Tables keep their names unless you rename them or their schema here. Everything else uses the source’s
        names. <HelpLink help="guides/transformations" about="names at the destinations" />
      </Text>
      <Stack gap={6} mt={6}>
        {renames.map((rename) => (
          <RenameFields
            key={renamedPlace(rename)}
            rename={rename}
            there={
              rename.table == null ? null : nameThere(rules, { schema: rename.schema, table: rename.table })
            }
            onChange={(next) => onChange(withRename(rules, next))}
            onRemove={() => onChange(withoutRename(rules, rename))}
          />
        ))}
        {free.length > 0 && (
          <Select
            aria-label="Rename a table or schema"
            placeholder="Rename a table or schema"
            searchable
            limit={100}
            maw={320}
            data={free.map(renamedPlace)}
            value={null}
            onChange={add}
          />
        )}
      </Stack>
    </Fieldset>
  );
}

interface RenameFieldsProps {
  rename: Rename;
  /** The table's name at the destinations; null: of a schema. */
  there: TableName | null;
  onChange: (rename: Rename) => void;
  onRemove: () => void;
}

function RenameFields({ rename, there, onChange, onRemove }: RenameFieldsProps) {
  const place = renamedPlace(rename);
  return (
    <Group gap={6} align="flex-start" wrap="nowrap">
      <Text size="sm" flex={1} mt={6} style={{ overflowWrap: "anywhere" }}>
        {place} →
      </Text>
      <TextInput
        aria-label={`Schema of ${place} at the destinations`}
        placeholder={there?.schema ?? rename.schema}
        value={rename.to_schema ?? ""}
        error={faultOfName(rename.to_schema)}
        onChange={(event) => onChange({ ...rename, to_schema: event.currentTarget.value || null })}
        flex={1}
      />
      {there && (
        <TextInput
          aria-label={`Name of ${place} at the destinations`}
          placeholder={there.table}
          value={rename.to_table ?? ""}
          error={faultOfName(rename.to_table)}
          onChange={(event) => onChange({ ...rename, to_table: event.currentTarget.value || null })}
          flex={1}
        />
      )}
      <ActionIcon aria-label={`Keep the name of ${place}`} onClick={onRemove} mt={4}>
        <IconX size={15} aria-hidden />
      </ActionIcon>
    </Group>
  );
}
