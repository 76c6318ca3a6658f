// A libpq URI taken apart into the form's fields: postgresql://user:password@host1:5432,host2/database?sslmode=require
import { type DatabaseFormValues, sslModes } from "./form-values";

const pattern =
  /^postgres(?:ql)?:\/\/(?:(?<user>[^:@/?]*)(?::(?<password>[^@/?]*))?@)?(?<hosts>[^/?]*)(?:\/(?<dbname>[^?]*))?(?:\?(?<query>.*))?$/;

export function isUri(text: string): boolean {
  return /^postgres(ql)?:\/\//.test(text.trim());
}

/** Null where it cannot be read: it then stays as it was typed, and the API says what is wrong with it. */
export function fieldsOfUri(text: string): Partial<DatabaseFormValues> | null {
  const groups = pattern.exec(text.trim())?.groups;
  if (!groups) return null;
  try {
    return fieldsOf(groups);
  } catch {
    return null; // a % that escapes nothing
  }
}

function fieldsOf(groups: Record<string, string | undefined>): Partial<DatabaseFormValues> {
  const query = new URLSearchParams(groups.query ?? "");
  const options = Object.fromEntries(query);
  const { sslmode, user, password, dbname, host, port, ...others } = options;
  const hosts = hostAndPort(decodeURIComponent(groups.hosts ?? ""));
  const found = {
    ...hosts,
    ...(groups.user || user ? { user: decodeURIComponent(groups.user ?? "") || user } : {}),
    ...(groups.password || password
      ? { password: decodeURIComponent(groups.password ?? "") || password }
      : {}),
    ...(groups.dbname || dbname ? { dbname: decodeURIComponent(groups.dbname ?? "") || dbname } : {}),
    ...(host ? { host } : {}),
    ...(port ? { port: Number(port) } : {}),
    ...(Object.keys(others).length > 0 ? { options: others } : {}),
  };
  const mode = sslModes.find((known) => known === sslmode);
  return mode ? { ...found, sslmode: mode } : found;
}

/** One host's port goes into its own field; several hosts keep theirs. */
function hostAndPort(text: string): { host?: string; port?: number } {
  if (text === "") return {};
  const single = /^(?<host>\[[^\]]+\]|[^:,]+)(?::(?<port>\d+))?$/.exec(text)?.groups;
  if (!single?.host) return { host: text, port: 5432 };
  return { host: single.host, port: Number(single.port ?? 5432) };
}
