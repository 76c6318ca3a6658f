// Values of parameters in a form, apart from any widget.
import type { ParameterValue, StreamParameter } from "@/api/types";

export type Values = Record<string, ParameterValue>;

/** Why a value does not fit its definition, or null. */
export function parameterFault(definition: StreamParameter, value: ParameterValue): string | null {
  if (definition.type === "integer") {
    if (typeof value !== "number" || !Number.isInteger(value)) return "Enter a whole number.";
    const { minimum, maximum } = definition;
    if (minimum !== null && value < minimum) return `At least ${minimum}.`;
    if (maximum !== null && value > maximum) return `At most ${maximum}.`;
  }
  if (definition.type === "enum" && !definition.values?.includes(String(value)))
    return "Choose one of the values.";
  if (definition.type === "boolean" && typeof value !== "boolean") return "On or off.";
  return null;
}

export function defaults(definitions: StreamParameter[]): Values {
  return Object.fromEntries(definitions.map((definition) => [definition.name, definition.default]));
}

/** Only what differs from the base is sent: the API keeps the rest as it is. */
export function changedValues(base: Values, edited: Values): Values {
  return Object.fromEntries(Object.entries(edited).filter(([name, value]) => base[name] !== value));
}

/** The same parameters are set, to the same values. */
export function sameValues(left: Values, right: Values): boolean {
  const names = new Set([...Object.keys(left), ...Object.keys(right)]);
  return [...names].every((name) => left[name] === right[name]);
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
  parts.push(
    `default ${typeof preset === "boolean" ? (preset ? "on" : "off") : preset.toLocaleString("en-US")}`,
  );
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
  "copy_workers",
  "initial_copy",
]);

export function byNeed(definitions: StreamParameter[]): Record<"basic" | "advanced", StreamParameter[]> {
  return {
    basic: definitions.filter(({ name }) => BASIC.has(name)),
    advanced: definitions.filter(({ name }) => !BASIC.has(name)),
  };
}
