// The database form's state, apart from any widget.
import type { DatabaseTest, DatabaseUpdate } from "@/api/databases";
import type { Database, DatabaseCreate } from "@/api/types";

export interface DatabaseFormValues {
  name: string;
  host: string;
  port: number | string;
  dbname: string;
  user: string;
  password: string;
  sslmode: NonNullable<DatabaseCreate["sslmode"]>;
}

export const sslModes: DatabaseFormValues["sslmode"][] = [
  "disable",
  "allow",
  "prefer",
  "require",
  "verify-ca",
  "verify-full",
];

export const emptyForm: DatabaseFormValues = {
  name: "",
  host: "",
  port: 5432,
  dbname: "",
  user: "",
  password: "",
  sslmode: "prefer",
};

export function toFormValues(database: Database): DatabaseFormValues {
  const { name, host, port, dbname, user, sslmode } = database;
  return { name, host, port, dbname, user, sslmode, password: "" };
}

export type FormFaults = Partial<Record<keyof DatabaseFormValues, string>>;

export function formFaults(values: DatabaseFormValues): FormFaults {
  const faults: FormFaults = {};
  for (const field of ["name", "host", "dbname", "user"] as const)
    if (values[field].trim() === "") faults[field] = "Needed.";
  const port = Number(values.port);
  if (!Number.isInteger(port) || port < 1 || port > 65535) faults.port = "A number from 1 to 65535.";
  return faults;
}

function settings(values: DatabaseFormValues) {
  const { host, dbname, user, sslmode, password } = values;
  return { host: host.trim(), port: Number(values.port), dbname, user, password, sslmode };
}

export function toCreate(values: DatabaseFormValues): DatabaseCreate {
  return { name: values.name.trim(), ...settings(values), options: {} };
}

export function toTest(values: DatabaseFormValues, database: Database | null): DatabaseTest {
  return { ...settings(values), options: database?.options ?? {}, database_id: database?.id ?? null };
}

/** Only what differs; an empty password means "as it was". */
export function toUpdate(values: DatabaseFormValues, database: Database): DatabaseUpdate {
  const before = toFormValues(database);
  const after = { ...settings(values), name: values.name.trim() };
  const changed = Object.entries(after).filter(
    ([field, value]) =>
      value !== before[field as keyof DatabaseFormValues] && !(field === "password" && value === ""),
  );
  return Object.fromEntries(changed);
}
