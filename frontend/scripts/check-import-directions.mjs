import { readdir, readFile } from "node:fs/promises";
import { dirname, join, normalize, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { networkViolation, specifiers, violation } from "./import-directions.mjs";

const root = fileURLToPath(new URL("../src", import.meta.url));
const entries = await readdir(root, { recursive: true });
const failures = [];

for (const entry of entries) {
  const path = entry.split(sep).join("/");
  if (!/\.tsx?$/.test(path) || path.endsWith(".d.ts")) continue;
  const text = await readFile(join(root, entry), "utf8");
  const network = networkViolation(path, text);
  if (network) failures.push(`${path}: ${network}`);
  for (const specifier of specifiers(text)) {
    let target = null;
    if (specifier.startsWith("@/")) target = specifier.slice(2);
    else if (specifier.startsWith("."))
      target = normalize(join(dirname(path), specifier))
        .split(sep)
        .join("/");
    if (target === null || target.startsWith("..")) continue;
    const reason = violation(path, target);
    if (reason) failures.push(`${path} imports ${specifier}: ${reason}`);
  }
}

if (failures.length > 0) {
  console.error(failures.join("\n"));
  console.error(`${failures.length} imports against the directions of ${relative(process.cwd(), root)}`);
  process.exit(1);
}
