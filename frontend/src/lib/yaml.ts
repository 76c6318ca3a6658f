// A request's body as YAML 1.2, for people who keep their streams in files: `thalweg streams create-from` takes it. Bodies
// are JSON: there is nothing else to say.

const PLAIN = /^[A-Za-z_][A-Za-z0-9_-]*$/;
const NOT_TEXT = /^(true|false|null|yes|no|on|off|y|n)$/i;

/** Characters that a string of JSON may hold as they are, and one of YAML may not. */
const NOT_PRINTABLE = /[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]/g;

const quoted = (text: string) =>
  JSON.stringify(text).replace(
    NOT_PRINTABLE,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );

function scalar(value: unknown): string {
  if (typeof value !== "string") return JSON.stringify(value);
  return PLAIN.test(value) && !NOT_TEXT.test(value) ? value : quoted(value);
}

const isEmpty = (value: object) => Object.keys(value).length === 0;

function lines(value: unknown): string[] {
  if (typeof value !== "object" || value === null) return [scalar(value)];
  if (isEmpty(value)) return [Array.isArray(value) ? "[]" : "{}"];
  if (Array.isArray(value))
    return value.flatMap((item) =>
      lines(item).map((line, place) => (place === 0 ? `- ${line}` : `  ${line}`)),
    );
  return Object.entries(value)
    .filter(([, item]) => item !== undefined)
    .flatMap(([key, item]) => {
      const inner = lines(item);
      const nested = typeof item === "object" && item !== null && !isEmpty(item);
      return nested
        ? [`${scalar(key)}:`, ...inner.map((line) => `  ${line}`)]
        : [`${scalar(key)}: ${inner[0]}`];
    });
}

export function yaml(value: unknown): string {
  return lines(value).join("\n");
}
