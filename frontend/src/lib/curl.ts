/** A REST call as the console makes it, for people who want to automate it. */
export interface RestCallSpec {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  path: string;
  body?: unknown;
  headers?: Record<string, string>;
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** As the command line finds it: in a variable, or in the file that `source .thalweg/cli.env` names. */
const TOKEN = `\${THALWEG_TOKEN:-$(cat "$THALWEG_TOKEN_FILE")}`;

/** The same call for a shell. The token stays where it is: the console never shows a secret. */
export function curl(call: RestCallSpec, origin: string): string {
  const lines = [
    `curl -X ${call.method} ${quote(origin + call.path)}`,
    `  -H "Authorization: Bearer ${TOKEN}"`,
  ];
  for (const [name, value] of Object.entries(call.headers ?? {}))
    lines.push(`  -H ${quote(`${name}: ${value}`)}`);
  if (call.body !== undefined) {
    lines.push(`  -H 'Content-Type: application/json'`);
    lines.push(`  -d ${quote(JSON.stringify(call.body, null, 2).replaceAll("\n", "\n  "))}`);
  }
  return lines.join(" \\\n");
}
