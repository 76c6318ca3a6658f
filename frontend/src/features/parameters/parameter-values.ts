// Values of parameters in a form, apart from any widget.
import type {
  ComparedTable,
  ConflictHandler,
  ErrorPolicy,
  ParameterValue,
  StatementHandler,
  StreamParameter,
} from "@/api/types";
import { handlerFault } from "./handler-fault";

export type Values = Record<string, ParameterValue>;

/** Why a value does not fit its definition, or null. */
export function parameterFault(definition: StreamParameter, value: ParameterValue): string | null {
  if (definition.type === "integer") {
    if (typeof value !== "number" || !Number.isInteger(value)) return "Enter a whole number.";
    const { minimum, maximum } = definition;
    if (minimum !== null && value < minimum) return `At least ${minimum}.`;
    if (maximum !== null && value > maximum) return `At most ${maximum}.`;
  }
  if (definition.type === "text" && String(value).length > (definition.maximum ?? 0))
    return `At most ${definition.maximum} characters.`;
  if (definition.type === "enum" && !definition.values?.includes(String(value)))
    return "Choose one of the values.";
  if (definition.type === "boolean" && typeof value !== "boolean") return "On or off.";
  if (definition.type === "error_policies")
    return (
      policiesOf(value)
        .map(policyFault)
        .find((fault) => fault !== null) ?? null
    );
  if (definition.type === "conflict_handlers")
    return (
      handlersOf(value)
        .map((handler, index, handlers) => handlerFault(handler, handlers.slice(0, index)))
        .find((fault) => fault !== null) ?? null
    );
  if (definition.type === "conflict_detection") {
    const tables = comparedOf(value);
    return tables.map((_, index) => comparedFault(tables, index)).find((fault) => fault !== null) ?? null;
  }
  if (definition.type === "statement_handlers")
    return (
      statementsOf(value)
        .map(statementFault)
        .find((fault) => fault !== null) ?? null
    );
  return null;
}

/** The value of the parameter error_policies. */
export function policiesOf(value: ParameterValue): ErrorPolicy[] {
  return Array.isArray(value) ? (value as ErrorPolicy[]) : [];
}

/** The value of the parameter conflict_handlers. */
export function handlersOf(value: ParameterValue): ConflictHandler[] {
  return Array.isArray(value) ? (value as ConflictHandler[]) : [];
}

/** The value of the parameter conflict_detection. */
export function comparedOf(value: ParameterValue): ComparedTable[] {
  return Array.isArray(value) ? (value as ComparedTable[]) : [];
}

/** The value of the parameter statement_handlers. */
export function statementsOf(value: ParameterValue): StatementHandler[] {
  return Array.isArray(value) ? (value as StatementHandler[]) : [];
}

const ERROR = /^([0-9A-Z]{2}|[0-9A-Z]{5}|apply_conflict|apply_failed|initial_copy_inconsistent)$/;
const OF_COLUMNS = /(?<![:\w]):(new|old)\.("[^"]*"|\w+)/i;
const QUOTES =
  /\b[eE]'(?:\\[\s\S]|''|[^'\\])*'|'(?:[^']|'')*'|(?<!\.)"[^"]*"|--.*|\/\*[\s\S]*?\*\/|\$(\w*)\$[\s\S]*?\$\1\$/g;
const OF_ERRORS = /(?<![:\w]):(sqlstate|error|constraint|kind)\b/i;
const OF_CHANGES = /(?<![:\w]):(new|old|operation|schema|table)\b/i;

/** Why a statement cannot be kept, or null. The API and the destination read the text as SQL: here are only names that
 * cannot be meant. */
export function statementFault({ when, schema, table, errors, statement }: StatementHandler): string | null {
  if ((schema === undefined) !== (table === undefined)) return "Name the schema and the table together.";
  if (when === "instead" && table === undefined)
    return "A statement takes the place of the changes of one table: name it.";
  if (errors?.some((error) => !ERROR.test(error)))
    return "Each error is an SQLSTATE in upper case, such as 23505; the class of one, such as 23; or one of the codes in the list.";
  if (statement.trim() === "") return "Write the statement.";
  const unquoted = statement.replace(QUOTES, "''");
  const ofChange = when === "precommit" ? OF_CHANGES.exec(unquoted)?.[0] : undefined;
  if (ofChange !== undefined)
    return `${ofChange} belongs to a change: at the end of a transaction there are only :commit_time, :commit_lsn and :xid.`;
  const ofError = when === "error" ? undefined : OF_ERRORS.exec(unquoted)?.[0];
  if (ofError !== undefined)
    return `${ofError} belongs to an error: only a statement in the place of changes that fail has it.`;
  const column = table === undefined ? OF_COLUMNS.exec(unquoted)?.[0] : undefined;
  return column === undefined ? null : `${column} is a column of one table: name the table.`;
}

/** Why an entry cannot be kept, or null. */
export function comparedFault(tables: ComparedTable[], index: number): string | null {
  const { schema, table, columns } = tables[index] as ComparedTable;
  if ((schema === undefined) !== (table === undefined)) return "Name the schema and the table together.";
  if (columns !== undefined && table === undefined) return "Columns belong to one table: name the table.";
  if (columns !== undefined && new Set(columns).size < columns.length) return "Name each column once.";
  const isDecided = tables
    .slice(0, index)
    .some((before) => before.table === undefined || (before.schema === schema && before.table === table));
  return isDecided ? "An entry above already covers this table: write one entry for each table." : null;
}

function isWhole(value: number | undefined, minimum: number, maximum: number): boolean {
  return value !== undefined && Number.isInteger(value) && value >= minimum && value <= maximum;
}

/** Why a policy cannot be kept, or null. */
export function policyFault({
  error,
  schema,
  table,
  action,
  times,
  delay_seconds,
}: ErrorPolicy): string | null {
  if (error !== undefined && !ERROR.test(error))
    return "The error is an SQLSTATE in upper case, such as 23505; the class of one, such as 23; or one of the codes in the list.";
  if ((schema === undefined) !== (table === undefined)) return "Name the schema and the table together.";
  if (action !== "retry") return null;
  if (!isWhole(times, 1, 100)) return "Retry 1 to 100 times.";
  return isWhole(delay_seconds, 0, 3600) ? null : "Wait 0 to 3,600 s before each retry.";
}

/** Lists are compared by what is in them. */
export function sameValue(left: ParameterValue | undefined, right: ParameterValue | undefined): boolean {
  return left === right || (Array.isArray(left) && JSON.stringify(left) === JSON.stringify(right));
}

/** In a line, for people. */
export function valueInWords(value: boolean | number | string | unknown[]): string {
  if (Array.isArray(value))
    return value.length === 0 ? "none" : `${value.length} ${value.length === 1 ? "entry" : "entries"}`;
  if (typeof value === "boolean") return value ? "on" : "off";
  if (value === "") return "none";
  return value.toLocaleString("en-US");
}

export function defaults(definitions: StreamParameter[]): Values {
  return Object.fromEntries(definitions.map((definition) => [definition.name, definition.default]));
}

/** Only what differs from the base is sent: the API keeps the rest as it is. */
export function changedValues(base: Values, edited: Values): Values {
  return Object.fromEntries(Object.entries(edited).filter(([name, value]) => !sameValue(base[name], value)));
}

/** The same parameters are set, to the same values. */
export function sameValues(left: Values, right: Values): boolean {
  const names = new Set([...Object.keys(left), ...Object.keys(right)]);
  return [...names].every((name) => sameValue(left[name], right[name]));
}

export function anyFault(definitions: StreamParameter[], values: Values): boolean {
  return definitions.some((definition) => {
    const value = values[definition.name];
    return value !== undefined && parameterFault(definition, value) !== null;
  });
}

export function rangeInWords({ type, minimum, maximum, unit, default: preset }: StreamParameter): string {
  const parts: string[] = [];
  if (type === "integer" && minimum !== null && maximum !== null)
    parts.push(
      `${minimum.toLocaleString("en-US")} to ${maximum.toLocaleString("en-US")}${unit ? ` ${unit}` : ""}`,
    );
  parts.push(`default ${valueInWords(preset)}`);
  return parts.join(", ");
}

/** Components in the order of the path, so that the form reads like the strip. */
export function byComponent(definitions: StreamParameter[]): [string, StreamParameter[]][] {
  const groups = new Map<string, StreamParameter[]>();
  for (const definition of definitions)
    groups.set(definition.component, [...(groups.get(definition.component) ?? []), definition]);
  return [...groups];
}

/** Parameters that people ask about; the others are for those who have measured that they need them. */
const BASIC = new Set([
  "parallelism",
  "commit_serialization",
  "disable_on_error",
  "error_policies",
  "conflict_handlers",
  "conflict_detection",
  "statement_handlers",
  "copy_workers",
  "initial_copy",
]);

export function byNeed(definitions: StreamParameter[]): Record<"basic" | "advanced", StreamParameter[]> {
  return {
    basic: definitions.filter(({ name }) => BASIC.has(name)),
    advanced: definitions.filter(({ name }) => !BASIC.has(name)),
  };
}
