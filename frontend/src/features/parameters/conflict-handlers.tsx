import { Select, TagsInput, Textarea, TextInput } from "@mantine/core";
import type { ConflictHandler } from "@/api/types";
import { EntryList, TableFields } from "./entry-list";
import classes from "./entry-list.module.css";
import { comparesRows, handlerFault, hasTwoRows } from "./handler-fault";
import { withOptional } from "./optional-member";

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
  { value: "multiple_unique_conflicts", label: "Several keys are taken" },
  { value: "foreign_key_missing", label: "The referenced row is missing" },
];
const ACTIONS: { value: ConflictHandler["action"]; label: string }[] = [
  { value: "discard", label: "Leave the change out" },
  { value: "overwrite", label: "Overwrite" },
  { value: "maximum", label: "The higher value wins" },
  { value: "minimum", label: "The lower value wins" },
  { value: "latest", label: "The later row wins" },
  { value: "priority", label: "The better place in a list wins" },
  { value: "delta", label: "Add the difference" },
  { value: "append", label: "Append the array’s elements" },
  { value: "merge", label: "Merge the JSON members" },
  { value: "expression", label: "SQL expression" },
  { value: "error", label: "As without a handler" },
];

const TIES: { value: NonNullable<ConflictHandler["tie"]>; label: string }[] = [
  { value: "discard", label: "The destination's stays" },
  { value: "overwrite", label: "The source's wins" },
];

/** Handlers of single changes that conflict with a row of the destination: the first that matches decides. */
export function ConflictHandlers({ handlers, onChange, disabled }: ConflictHandlersProps) {
  return (
    <EntryList
      entries={handlers}
      onChange={onChange}
      noun="handler"
      addLabel="Add a handler"
      blank={{ kind: "insert_exists", action: "discard" }}
      faultOf={(index) => handlerFault(handlers[index] as ConflictHandler, handlers.slice(0, index))}
      isOrdered
      disabled={disabled}
    >
      {(handler, put) => <Handler handler={handler} disabled={disabled} onChange={put} />}
    </EntryList>
  );
}

interface HandlerProps {
  handler: ConflictHandler;
  onChange: (handler: ConflictHandler) => void;
  disabled?: boolean;
}

function Handler({ handler, onChange, disabled }: HandlerProps) {
  const group = (columns: string[]) => onChange(withOptional(handler, "columns", columns));
  const decideBy = (column: string) => onChange(withOptional(handler, "by", column));
  // Members that only some actions have go with them.
  const act = (action: ConflictHandler["action"]) => {
    const { by, tie, order, expression, ...others } = handler;
    onChange({
      ...others,
      ...(comparesRows(action) && { ...(by && { by }), ...(tie && { tie }) }),
      ...(action === "priority" && order && { order }),
      ...(action === "expression" && expression && { expression }),
      action,
    });
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
      <TableFields entry={handler} onChange={onChange} disabled={disabled} />
      <Select
        label="Action"
        w={190}
        data={ACTIONS}
        value={handler.action}
        allowDeselect={false}
        disabled={disabled}
        onChange={(action) => action !== null && act(action)}
      />
      {comparesRows(handler.action) && (
        <>
          <TextInput
            label="By the column"
            placeholder={handler.action === "latest" ? "time of the commit" : undefined}
            w={150}
            value={handler.by ?? ""}
            disabled={disabled}
            onChange={(event) => decideBy(event.currentTarget.value)}
          />
          <Select
            label="Where both are the same"
            w={190}
            data={TIES}
            value={handler.tie ?? "discard"}
            allowDeselect={false}
            disabled={disabled}
            onChange={(tie) => tie !== null && onChange({ ...handler, tie })}
          />
        </>
      )}
      {handler.action === "priority" && (
        <TagsInput
          label="Its values, the best first"
          w={320}
          value={handler.order ?? []}
          disabled={disabled}
          onChange={(order) => onChange(withOptional(handler, "order", order))}
        />
      )}
      {(hasTwoRows(handler.kind) || handler.columns) && (
        <TagsInput
          label="Group of columns"
          placeholder={handler.columns === undefined ? "all others" : undefined}
          w={320}
          value={handler.columns ?? []}
          disabled={disabled}
          onChange={group}
        />
      )}
      {handler.action === "expression" && (
        <Textarea
          label="Expression"
          description="SQL over new.column and old.column, the source’s row, and t.column, the destination’s. Only admins may change it."
          placeholder="greatest(new.price, t.price)"
          w="100%"
          autosize
          minRows={2}
          maxRows={8}
          classNames={{ input: classes.code }}
          value={handler.expression ?? ""}
          disabled={disabled}
          onChange={(event) => onChange(withOptional(handler, "expression", event.currentTarget.value))}
        />
      )}
    </>
  );
}
