import { ActionIcon, Button, Group, Stack, Text, TextInput } from "@mantine/core";
import { IconArrowDown, IconArrowUp, IconTrash } from "@tabler/icons-react";
import type { ReactNode } from "react";
import classes from "./entry-list.module.css";
import { withOptional } from "./optional-member";

interface EntryListProps<T> {
  entries: T[];
  onChange: (entries: T[]) => void;
  /** The name of an entry, in lower case: "policy". */
  noun: string;
  addLabel: string;
  /** An entry that is added. */
  blank: T;
  /** Why an entry cannot be kept, or null. */
  faultOf: (index: number) => string | null;
  children: (entry: T, put: (entry: T) => void) => ReactNode;
  /** Entries have an order: they can be moved. */
  isOrdered?: boolean;
  disabled?: boolean;
}

/** The value of a parameter that is a list: its entries, each with its fields, in boxes. */
export function EntryList<T>(props: EntryListProps<T>) {
  const { entries, onChange, noun, addLabel, blank, faultOf, children, isOrdered, disabled } = props;
  const swap = (index: number, other: number) =>
    onChange(entries.with(index, entries[other] as T).with(other, entries[index] as T));
  const title = noun.charAt(0).toUpperCase() + noun.slice(1);
  return (
    <Stack gap="xs" className={classes.list}>
      {entries.map((entry, index) => {
        const fault = faultOf(index);
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: an entry has no other name than its place
          <Group key={index} component="fieldset" gap="xs" align="flex-start" className={classes.entry}>
            <legend className={classes.legend}>
              {title} {index + 1}
            </legend>
            {children(entry, (changed) => onChange(entries.with(index, changed)))}
            <Group gap={4} ml="auto">
              {isOrdered && (
                <>
                  <ActionIcon
                    variant="subtle"
                    aria-label={`Move ${noun} ${index + 1} up`}
                    disabled={disabled || index === 0}
                    onClick={() => swap(index, index - 1)}
                  >
                    <IconArrowUp size={14} aria-hidden />
                  </ActionIcon>
                  <ActionIcon
                    variant="subtle"
                    aria-label={`Move ${noun} ${index + 1} down`}
                    disabled={disabled || index === entries.length - 1}
                    onClick={() => swap(index, index + 1)}
                  >
                    <IconArrowDown size={14} aria-hidden />
                  </ActionIcon>
                </>
              )}
              <ActionIcon
                variant="subtle"
                aria-label={`Remove ${noun} ${index + 1}`}
                disabled={disabled}
                onClick={() => onChange(entries.toSpliced(index, 1))}
              >
                <IconTrash size={14} aria-hidden />
              </ActionIcon>
            </Group>
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
        onClick={() => onChange([...entries, blank])}
        style={{ alignSelf: "flex-start" }}
      >
        {addLabel}
      </Button>
    </Stack>
  );
}

interface TableFieldsProps<T> {
  entry: T;
  onChange: (entry: T) => void;
  disabled?: boolean;
}

/** The table that an entry is for, any where it names none. */
export function TableFields<T extends { schema?: string; table?: string }>(props: TableFieldsProps<T>) {
  const { entry, onChange, disabled } = props;
  return (
    <>
      <TextInput
        label="Schema"
        placeholder="any"
        w={110}
        value={entry.schema ?? ""}
        disabled={disabled}
        onChange={(event) => onChange(withOptional<T, "schema">(entry, "schema", event.currentTarget.value))}
      />
      <TextInput
        label="Table"
        placeholder="any"
        w={140}
        value={entry.table ?? ""}
        disabled={disabled}
        onChange={(event) => onChange(withOptional<T, "table">(entry, "table", event.currentTarget.value))}
      />
    </>
  );
}
