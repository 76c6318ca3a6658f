import { ActionIcon, Button, Group, Select, Stack, Text, TextInput } from "@mantine/core";
import { IconArrowDown, IconArrowUp, IconTrash } from "@tabler/icons-react";
import type { ConflictHandler } from "@/api/types";
import classes from "./error-policies.module.css";
import { handlerFault } from "./parameter-values";

interface ConflictHandlersProps {
  handlers: ConflictHandler[];
  onChange: (handlers: ConflictHandler[]) => void;
  disabled?: boolean;
}

const KINDS: { value: ConflictHandler["kind"]; label: string }[] = [
  { value: "insert_exists", label: "INSERT: the row is there" },
  { value: "update_exists", label: "UPDATE: another row has the key" },
  { value: "update_missing", label: "UPDATE: no such row" },
  { value: "delete_missing", label: "DELETE: no such row" },
  { value: "update_origin_differs", label: "UPDATE: the row was changed" },
  { value: "delete_origin_differs", label: "DELETE: the row was changed" },
  { value: "foreign_key_missing", label: "The referenced row is missing" },
];
const ACTIONS: { value: ConflictHandler["action"]; label: string }[] = [
  { value: "discard", label: "Leave the change out" },
  { value: "overwrite", label: "Overwrite" },
  { value: "error", label: "As without a handler" },
];

/** Handlers of single changes that conflict with a row of the destination: the first that matches decides. */
export function ConflictHandlers({ handlers, onChange, disabled }: ConflictHandlersProps) {
  const put = (index: number, handler: ConflictHandler) => onChange(handlers.with(index, handler));
  const swap = (index: number, other: number) =>
    onChange(
      handlers
        .with(index, handlers[other] as ConflictHandler)
        .with(other, handlers[index] as ConflictHandler),
    );
  return (
    <Stack gap="xs" className={classes.list}>
      {handlers.map((handler, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a handler has no other name than its place
        <Group key={index} component="fieldset" gap="xs" align="flex-start" className={classes.policy}>
          <legend className={classes.legend}>Handler {index + 1}</legend>
          <Handler handler={handler} disabled={disabled} onChange={(changed) => put(index, changed)} />
          <Group gap={4} ml="auto">
            <ActionIcon
              variant="subtle"
              aria-label={`Move handler ${index + 1} up`}
              disabled={disabled || index === 0}
              onClick={() => swap(index, index - 1)}
            >
              <IconArrowUp size={14} aria-hidden />
            </ActionIcon>
            <ActionIcon
              variant="subtle"
              aria-label={`Move handler ${index + 1} down`}
              disabled={disabled || index === handlers.length - 1}
              onClick={() => swap(index, index + 1)}
            >
              <IconArrowDown size={14} aria-hidden />
            </ActionIcon>
            <ActionIcon
              variant="subtle"
              aria-label={`Remove handler ${index + 1}`}
              disabled={disabled}
              onClick={() => onChange(handlers.toSpliced(index, 1))}
            >
              <IconTrash size={14} aria-hidden />
            </ActionIcon>
          </Group>
          {handlerFault(handler) && (
            <Text size="xs" c="var(--bad)" w="100%">
              {handlerFault(handler)}
            </Text>
          )}
        </Group>
      ))}
      <Button
        variant="default"
        size="xs"
        disabled={disabled}
        onClick={() => onChange([...handlers, { kind: "insert_exists", action: "discard" }])}
        style={{ alignSelf: "flex-start" }}
      >
        Add a handler
      </Button>
    </Stack>
  );
}

interface HandlerProps {
  handler: ConflictHandler;
  onChange: (handler: ConflictHandler) => void;
  disabled?: boolean;
}

function Handler({ handler, onChange, disabled }: HandlerProps) {
  const name = (part: "schema" | "table", text: string) => {
    const { [part]: _, ...others } = handler;
    onChange(text === "" ? others : { ...others, [part]: text });
  };
  return (
    <>
      <Select
        label="Conflict"
        w={240}
        data={KINDS}
        value={handler.kind}
        allowDeselect={false}
        disabled={disabled}
        onChange={(kind) => kind !== null && onChange({ ...handler, kind })}
      />
      <TextInput
        label="Schema"
        placeholder="any"
        w={110}
        value={handler.schema ?? ""}
        disabled={disabled}
        onChange={(event) => name("schema", event.currentTarget.value)}
      />
      <TextInput
        label="Table"
        placeholder="any"
        w={140}
        value={handler.table ?? ""}
        disabled={disabled}
        onChange={(event) => name("table", event.currentTarget.value)}
      />
      <Select
        label="Action"
        w={190}
        data={ACTIONS}
        value={handler.action}
        allowDeselect={false}
        disabled={disabled}
        onChange={(action) => action !== null && onChange({ ...handler, action })}
      />
    </>
  );
}
