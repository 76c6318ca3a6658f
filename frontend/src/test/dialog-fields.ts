// Dialogs in the console's source that hold a field in which one types.

/** Text by path, as `import.meta.glob` gives it. */
type Sources = Record<string, string>;

const FIELDS =
  /^(TextInput|Textarea|NumberInput|PasswordInput|Autocomplete|TagsInput|Select|MultiSelect|DateTimePicker)$/;
const DIALOG = /<(Modal|Drawer)\b[\s\S]*?<\/\1>/g;

/** The dialogs of a file that hold a field, in their own text or in a component that they show. */
export function dialogsWithFields(path: string, sources: Sources): string[] {
  return [...(sources[path] ?? "").matchAll(DIALOG)]
    .map(([text]) => text)
    .filter((text) => holdsField(inside(text), path, sources, new Set()));
}

/** Without the dialog's own tag. */
function inside(dialog: string): string {
  return dialog.replace(/^<(Modal|Drawer)/, "").replace(/<\/(Modal|Drawer)>$/, "");
}

function holdsField(text: string, path: string, sources: Sources, seen: Set<string>): boolean {
  // A dialog in a dialog is one of its own.
  const names = [...text.replace(DIALOG, "").matchAll(/<([A-Z]\w*)/g)].map(([, name]) => name ?? "");
  return [...new Set(names)].some((name) => FIELDS.test(name) || componentHolds(name, path, sources, seen));
}

function componentHolds(name: string, path: string, sources: Sources, seen: Set<string>): boolean {
  const at = declaredIn(name, path, sources);
  const key = `${at} ${name}`;
  if (at === null || seen.has(key)) return false;
  seen.add(key);
  const body = new RegExp(`^(?:export )?function ${name}\\b[\\s\\S]*?^}$`, "m").exec(sources[at] ?? "")?.[0];
  return body !== undefined && holdsField(body, at, sources, seen);
}

/** The file that declares a component which another one shows; null of a library's. */
function declaredIn(name: string, path: string, sources: Sources): string | null {
  const text = sources[path] ?? "";
  if (new RegExp(`^(?:export )?function ${name}\\b`, "m").test(text)) return path;
  const from = new RegExp(`import \\{[^}]*\\b${name}\\b[^}]*\\} from "([^"]+)"`).exec(text)?.[1];
  if (!from) return null;
  const base = path.replace(/[^/]*$/, "");
  const file = from.startsWith("@/") ? from.replace("@/", "../") : new URL(from, `http://x/${base}`).pathname;
  const wanted = from.startsWith("@/") ? `${file}.tsx` : `..${file}.tsx`;
  return wanted in sources ? wanted : null;
}
