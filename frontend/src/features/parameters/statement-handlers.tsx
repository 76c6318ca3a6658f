import {
  ActionIcon,
  Button,
  Group,
  MultiSelect,
  Select,
  Stack,
  Text,
  Textarea,
  TextInput,
} from "@mantine/core";
import { IconArrowDown, IconArrowUp, IconTrash } from "@tabler/icons-react";
import type { StatementHandler } from "@/api/types";
import classes from "./error-policies.module.css";
import { withOptional } from "./optional-member";
import { statementFault } from "./parameter-values";

interface StatementHandlersProps {
  handlers: StatementHandler[];
  onChange: (handlers: StatementHandler[]) => void;
  disabled?: boolean;
  /** Whether the user is an administrator: only these may change the statements. */
  mayChange: boolean;
}

type Operation = NonNullable<StatementHandler["operations"]>[number];

const MOMENTS: { value: StatementHandler["when"]; label: string }[] = [
  { value: "after", label: "After each change" },
  { value: "instead", label: "Instead of each change" },
  { value: "precommit", label: "At the end of each transaction" },
];
const OPERATIONS: Operation[] = ["INSERT", "UPDATE", "DELETE"];

/** Statements that the destination executes for changes: all that match, in their order. */
export function StatementHandlers({ handlers, onChange, disabled, mayChange }: StatementHandlersProps) {
  const locked = disabled || !mayChange;
  const swap = (index: number, other: number) =>
    onChange(
      handlers
        .with(index, handlers[other] as StatementHandler)
        .with(other, handlers[index] as StatementHandler),
    );
  return (
    <Stack gap="xs" className={classes.list}>
      {!mayChange && (
        <Text size="xs" c="dimmed">
          Only administrators may change the statements: they run with all rights of the destination's user.
        </Text>
      )}
      {handlers.map((handler, index) => {
        const fault = statementFault(handler);
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: a handler has no other name than its place
          <Group key={index} component="fieldset" gap="xs" align="flex-start" className={classes.policy}>
            <legend className={classes.legend}>Statement {index + 1}</legend>
            <Handler
              handler={handler}
              disabled={locked}
              onChange={(changed) => onChange(handlers.with(index, changed))}
            />
            <Group gap={4} ml="auto">
              <ActionIcon
                variant="subtle"
                aria-label={`Move statement ${index + 1} up`}
                disabled={locked || index === 0}
                onClick={() => swap(index, index - 1)}
              >
                <IconArrowUp size={14} aria-hidden />
              </ActionIcon>
              <ActionIcon
                variant="subtle"
                aria-label={`Move statement ${index + 1} down`}
                disabled={locked || index === handlers.length - 1}
                onClick={() => swap(index, index + 1)}
              >
                <IconArrowDown size={14} aria-hidden />
              </ActionIcon>
              <ActionIcon
                variant="subtle"
                aria-label={`Remove statement ${index + 1}`}
                disabled={locked}
                onClick={() => onChange(handlers.toSpliced(index, 1))}
              >
                <IconTrash size={14} aria-hidden />
              </ActionIcon>
            </Group>
            <Textarea
              label="Statement"
              placeholder="INSERT INTO audit.orders VALUES (:operation, :new.id, :commit_time)"
              autosize
              minRows={2}
              maxRows={12}
              w="100%"
              styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
              spellCheck={false}
              value={handler.statement}
              disabled={locked}
              onChange={(event) =>
                onChange(handlers.with(index, { ...handler, statement: event.currentTarget.value }))
              }
            />
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
        disabled={locked}
        onClick={() => onChange([...handlers, { when: "after", statement: "" }])}
        style={{ alignSelf: "flex-start" }}
      >
        Add a statement
      </Button>
    </Stack>
  );
}

interface HandlerProps {
  handler: StatementHandler;
  onChange: (handler: StatementHandler) => void;
  disabled?: boolean;
}

function Handler({ handler, onChange, disabled }: HandlerProps) {
  const name = (part: "schema" | "table", text: string) => onChange(withOptional(handler, part, text));
  // The end of a transaction is of no table: members that only changes have go with them.
  const choose = (when: StatementHandler["when"]) =>
    onChange(when === "precommit" ? { when, statement: handler.statement } : { ...handler, when });
  const ofChanges = handler.when !== "precommit";
  return (
    <>
      <Select
        label="When"
        w={240}
        data={MOMENTS}
        value={handler.when}
        allowDeselect={false}
        disabled={disabled}
        onChange={(when) => when !== null && choose(when)}
      />
      {ofChanges && (
        <>
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
          <MultiSelect
            label="Operations"
            placeholder={handler.operations === undefined ? "all" : undefined}
            w={260}
            data={OPERATIONS}
            value={handler.operations ?? []}
            disabled={disabled}
            onChange={(operations) =>
              onChange(withOptional(handler, "operations", operations as Operation[]))
            }
          />
        </>
      )}
    </>
  );
}
