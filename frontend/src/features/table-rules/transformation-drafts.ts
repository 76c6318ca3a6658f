// The transformations of a table as the editor holds them: each step with all fields that any kind of step has.
import type { TableRules, TableTransformations, Transformation } from "@/api/types";
import type { TableName } from "./rule-scopes";

export type Deed =
  | "drop"
  | "rename"
  | "cast"
  | "null"
  | "constant"
  | "partial"
  | "hash"
  | "digits"
  | "keep"
  | "add"
  | "compute";

export const deeds: { value: Deed; label: string }[] = [
  { value: "drop", label: "Drop" },
  { value: "rename", label: "Rename" },
  { value: "cast", label: "Cast to another type" },
  { value: "null", label: "Mask with NULL" },
  { value: "constant", label: "Mask with a constant" },
  { value: "partial", label: "Mask in part" },
  { value: "hash", label: "Mask with a keyed hash" },
  { value: "digits", label: "Mask digits" },
  { value: "keep", label: "Keep only some columns" },
  { value: "add", label: "Add with a constant" },
  { value: "compute", label: "Add with an expression" },
];

type AddedType = Extract<Transformation, { type: "add_column" }>["data_type"];

export const addedTypes: AddedType[] = [
  "text",
  "character varying",
  "bigint",
  "integer",
  "smallint",
  "numeric",
  "double precision",
  "boolean",
  "date",
  "timestamp with time zone",
  "timestamp without time zone",
  "uuid",
  "jsonb",
];

/** Types that an expression or a cast can have. */
export const computedTypes = addedTypes.filter((type) => type !== "jsonb");

export interface StepDraft {
  /** For React; never sent. */
  key: number;
  deed: Deed;
  column: string;
  /** Of those that are kept. */
  columns: string[];
  to: string;
  dataType: AddedType;
  value: string;
  expression: string;
  keepFirst: number;
  keepLast: number;
}

export const emptyStep = {
  deed: "partial",
  column: "",
  columns: [],
  to: "",
  dataType: "text",
  value: "",
  expression: "",
  keepFirst: 0,
  keepLast: 0,
} satisfies Omit<StepDraft, "key">;

export function draftsOf(own: TableTransformations | undefined): StepDraft[] {
  return (own?.steps ?? []).map((step, key) => {
    if (step.type === "keep_columns") return { ...emptyStep, key, deed: "keep", columns: step.columns };
    const draft = { ...emptyStep, key, column: step.column };
    if (step.type === "cast_column") return { ...draft, deed: "cast", dataType: step.data_type };
    if (step.type === "add_column") {
      const dataType = step.data_type;
      return step.expression
        ? { ...draft, deed: "compute", dataType, expression: step.expression }
        : { ...draft, deed: "add", dataType, value: step.value ?? "" };
    }
    if (step.type === "drop_column") return { ...draft, deed: "drop" };
    if (step.type === "rename_column") return { ...draft, deed: "rename", to: step.to };
    return {
      ...draft,
      deed: step.with,
      value: step.value ?? "",
      keepFirst: step.keep_first ?? 0,
      keepLast: step.keep_last ?? 0,
    };
  });
}

export function stepOf(draft: StepDraft): Transformation {
  const { column } = draft;
  const mask = { type: "mask_column" as const, column, keep_first: 0, keep_last: 0 };
  switch (draft.deed) {
    case "drop":
      return { type: "drop_column", column };
    case "rename":
      return { type: "rename_column", column, to: draft.to };
    case "keep":
      return { type: "keep_columns", columns: draft.columns };
    case "add":
      return { type: "add_column", column, data_type: draft.dataType, value: draft.value };
    case "compute":
      return { type: "add_column", column, data_type: draft.dataType, expression: draft.expression };
    case "cast":
      return { type: "cast_column", column, data_type: draft.dataType };
    case "null":
      return { ...mask, with: "null" };
    case "hash":
    case "digits":
      return { ...mask, with: draft.deed };
    case "constant":
      return { ...mask, with: "constant", value: draft.value };
    case "partial":
      return { ...mask, with: "partial", keep_first: draft.keepFirst, keep_last: draft.keepLast };
  }
}

/** Why the step cannot be kept, as far as it says itself; the preflight asks the engine. */
export function faultOfStep({
  deed,
  column,
  columns,
  to,
  dataType,
  expression,
}: StepDraft): string | undefined {
  if (deed === "keep") return columns.length === 0 ? "Name the columns." : undefined;
  if (column === "") return "Name the column.";
  if (deed === "rename" && to === "") return "Give the column its new name.";
  if (deed === "compute" && expression.trim() === "") return "Write the expression.";
  if ((deed === "compute" || deed === "cast") && dataType === "jsonb") return "Choose another type.";
  return undefined;
}

/** The columns' names where a step finds them: as those before it have left them. */
export function namesBefore(columns: readonly string[], steps: readonly StepDraft[]): string[] {
  return steps.reduce(
    (names, { deed, column, columns: kept, to }) => {
      if (deed === "keep") return names.filter((name) => kept.includes(name));
      if ((deed === "add" || deed === "compute") && column !== "") return names.concat(column);
      if (deed === "drop") return names.filter((name) => name !== column);
      if (deed === "rename" && to !== "") return names.map((name) => (name === column ? to : name));
      return names;
    },
    [...columns],
  );
}

export function stepInWords(step: Transformation): string {
  switch (step.type) {
    case "drop_column":
      return `${step.column} dropped`;
    case "rename_column":
      return `${step.column} → ${step.to}`;
    case "mask_column":
      return `${step.column} masked`;
    case "keep_columns":
      return `only ${step.columns.join(", ")} kept`;
    case "add_column":
      return `${step.column} ${step.expression ? "computed" : "added"}`;
    case "cast_column":
      return `${step.column} cast to ${step.data_type}`;
  }
}

const isOf = (own: TableTransformations, { schema, table }: TableName) =>
  own.schema === schema && own.table === table;

export function transformationsOf(rules: TableRules, table: TableName): TableTransformations | undefined {
  return rules.transformations?.find((own) => isOf(own, table));
}

/** The rules with other transformations of a table; without steps: with none. */
export function withTransformations(
  rules: TableRules,
  table: TableName,
  steps: Transformation[],
): TableRules {
  if (steps.length === 0 && !transformationsOf(rules, table)) return rules;
  const others = (rules.transformations ?? []).filter((own) => !isOf(own, table));
  const own = { schema: table.schema, table: table.table, steps };
  return { ...rules, transformations: steps.length > 0 ? [...others, own] : others };
}
