import { MultiSelect, Select, TagsInput, Text, Textarea } from "@mantine/core";
import type { StatementHandler } from "@/api/types";
import { EntryList, TableFields } from "./entry-list";
import classes from "./entry-list.module.css";
import { KNOWN_ERRORS } from "./error-policies";
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
  { value: "error", label: "In the place of a change that fails" },
  { value: "precommit", label: "At the end of each transaction" },
];
const OPERATIONS: Operation[] = ["INSERT", "UPDATE", "DELETE"];

/** Statements that the destination executes for changes: all that match, in their order. */
export function StatementHandlers({ handlers, onChange, disabled, mayChange }: StatementHandlersProps) {
  const locked = disabled || !mayChange;
  return (
    <>
      {!mayChange && (
        <Text size="xs" c="dimmed">
          Only administrators may change the statements: they run with all rights of the destination's user.
        </Text>
      )}
      <EntryList
        entries={handlers}
        onChange={onChange}
        noun="statement"
        addLabel="Add a statement"
        blank={{ when: "after", statement: "" }}
        faultOf={(index) => statementFault(handlers[index] as StatementHandler)}
        isOrdered
        disabled={locked}
      >
        {(handler, put) => <Handler handler={handler} disabled={locked} onChange={put} />}
      </EntryList>
    </>
  );
}

interface HandlerProps {
  handler: StatementHandler;
  onChange: (handler: StatementHandler) => void;
  disabled?: boolean;
}

function Handler({ handler, onChange, disabled }: HandlerProps) {
  // The end of a transaction is of no table, and only changes that fail have errors: such members go with them.
  const choose = (when: StatementHandler["when"]) => {
    const { errors: _, ...others } = handler;
    if (when === "precommit") onChange({ when, statement: handler.statement });
    else onChange(when === "error" ? { ...handler, when } : { ...others, when });
  };
  const ofChanges = handler.when !== "precommit";
  return (
    <>
      <Select
        label="When"
        w={270}
        data={MOMENTS}
        value={handler.when}
        allowDeselect={false}
        disabled={disabled}
        onChange={(when) => when !== null && choose(when)}
      />
      {ofChanges && (
        <>
          <TableFields entry={handler} onChange={onChange} disabled={disabled} />
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
      {handler.when === "error" && (
        <TagsInput
          label="Errors"
          placeholder={handler.errors === undefined ? "any" : undefined}
          w={260}
          data={KNOWN_ERRORS}
          value={handler.errors ?? []}
          disabled={disabled}
          onChange={(errors) => onChange(withOptional(handler, "errors", errors))}
        />
      )}
      <Textarea
        label="Statement"
        placeholder="INSERT INTO audit.orders VALUES (:operation, :new.id, :commit_time)"
        autosize
        minRows={2}
        maxRows={12}
        w="100%"
        classNames={{ input: classes.code }}
        spellCheck={false}
        value={handler.statement}
        disabled={disabled}
        onChange={(event) => onChange({ ...handler, statement: event.currentTarget.value })}
      />
    </>
  );
}
