// Allowed imports below src/. Lower layers know nothing of higher ones; features never know each other.
const allowed = {
  app: ["app", "pages", "features", "api", "ui", "lib"],
  pages: ["pages", "features", "api", "ui", "lib"],
  features: ["features", "api", "ui", "lib"],
  api: ["api", "lib"],
  ui: ["ui", "lib"],
  lib: ["lib"],
  test: ["app", "pages", "features", "api", "ui", "lib", "test"],
};

/** "features/health/badge.tsx" → { layer: "features", part: "health" }; files directly in src/ belong to app. */
export function place(path) {
  const segments = path.split("/");
  if (segments.length === 1) return { layer: "app", part: "" };
  return { layer: segments[0], part: segments.length > 2 ? segments[1] : "" };
}

/** Returns why `from` must not import `to` (both relative to src/), or null when it may. */
export function violation(from, to) {
  const importer = place(from);
  const imported = place(to);
  const isTest = /\.test\.tsx?$/.test(from);
  if (imported.layer === "test")
    return isTest || importer.layer === "test" ? null : "product code imports src/test";
  // Only types: the unions of states and kinds, which lib/ puts into words.
  if (importer.layer === "lib" && to === "api/generated/schema") return null;
  const layers = allowed[importer.layer];
  if (!layers) return `unknown layer "${importer.layer}"`;
  if (!layers.includes(imported.layer)) return `${importer.layer} must not import ${imported.layer}`;
  if (importer.layer === "features" && imported.layer === "features" && importer.part !== imported.part)
    return `feature "${importer.part}" must not import feature "${imported.part}"`;
  if (importer.layer === "pages" && imported.layer === "pages" && importer.part !== imported.part)
    return `page "${importer.part}" must not import page "${imported.part}"`;
  return null;
}

/** Only src/api may talk to the network, and only its client and its event stream do. */
export function networkViolation(path, text) {
  if (place(path).layer === "api" || /\.test\.tsx?$/.test(path) || path.startsWith("test/")) return null;
  return /\bfetch\s*\(|\bnew EventSource\b|\bXMLHttpRequest\b/.test(text)
    ? "only src/api talks to the network"
    : null;
}

/** Import specifiers of a module's text, static and dynamic. */
export function specifiers(text) {
  const found = [];
  for (const match of text.matchAll(/(?:from\s+|import\s*\(\s*|import\s+)["']([^"']+)["']/g))
    found.push(match[1]);
  return found;
}
