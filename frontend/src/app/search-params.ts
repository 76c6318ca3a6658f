/** A text of the address's query, or undefined so that it does not show there. */
export function textParam(value: unknown): string | undefined {
  if (typeof value === "number") return String(value);
  return typeof value === "string" && value !== "" ? value : undefined;
}
