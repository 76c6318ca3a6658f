// Writes src/api/generated/schema.d.ts from the control plane's OpenAPI document. With --check it only compares,
// so that `npm run lint` fails when the committed types no longer fit the committed document.
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import openapiTS, { astToString } from "openapi-typescript";

const documentUrl = new URL("../../backend/openapi.json", import.meta.url);
const output = fileURLToPath(new URL("../src/api/generated/schema.d.ts", import.meta.url));
const banner = "// Generated from backend/openapi.json by `npm run generate`. Do not edit.\n\n";

const document = JSON.parse(await readFile(documentUrl, "utf8"));
const text = banner + astToString(await openapiTS(document));

if (process.argv.includes("--check")) {
  const committed = await readFile(output, "utf8").catch(() => "");
  if (committed !== text) {
    console.error("src/api/generated/schema.d.ts does not fit backend/openapi.json: run `npm run generate`.");
    process.exit(1);
  }
} else {
  await writeFile(output, text);
}
