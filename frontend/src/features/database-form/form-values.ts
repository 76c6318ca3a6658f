// The database form's state, apart from any widget.
import type { DatabaseTest, DatabaseUpdate } from "@/api/databases";
import type { Database, DatabaseCreate } from "@/api/types";

export const pemFields = ["sslrootcert", "sslcert", "sslkey", "sslcrl"] as const;
export type PemField = (typeof pemFields)[number];

/** Contents to store; empty: as it was; null: none any more. */
type PemValues = Record<PemField, string | null>;

export interface DatabaseFormValues extends PemValues {
  name: string;
  host: string;
  port: number | string;
  dbname: string;
  user: string;
  password: string;
  sslmode: NonNullable<DatabaseCreate["sslmode"]>;
  options: Record<string, string>;
  read_from: NonNullable<DatabaseCreate["read_from"]>;
}

/** Choices of the server, of several, that streams decode and copy. */
export const readFromChoices: { value: DatabaseFormValues["read_from"]; label: string }[] = [
  { value: "primary", label: "the primary" },
  { value: "standby", label: "a standby" },
];

/** From the weakest on. */
export const sslModes: DatabaseFormValues["sslmode"][] = [
  "disable",
  "allow",
  "prefer",
  "require",
  "verify-ca",
  "verify-full",
];

const noPem: PemValues = { sslrootcert: "", sslcert: "", sslkey: "", sslcrl: "" };

export const emptyForm: DatabaseFormValues = {
  name: "",
  host: "",
  port: 5432,
  dbname: "",
  user: "",
  password: "",
  sslmode: "prefer",
  options: {},
  read_from: "primary",
  ...noPem,
};

export function toFormValues(database: Database): DatabaseFormValues {
  const { name, host, port, dbname, user, sslmode, options, read_from } = database;
  return { name, host, port, dbname, user, sslmode, options, read_from, password: "", ...noPem };
}

export type FormFaults = Partial<Record<keyof DatabaseFormValues, string>>;

export function formFaults(values: DatabaseFormValues, database: Database | null): FormFaults {
  const faults: FormFaults = {};
  for (const field of ["name", "host", "dbname", "user"] as const)
    if (values[field].trim() === "") faults[field] = "Required.";
  const port = Number(values.port);
  if (!Number.isInteger(port) || port < 1 || port > 65535) faults.port = "Enter a number from 1 to 65535.";
  if (values.read_from === "standby" && !values.host.includes(","))
    faults.host = "Enter both servers, separated by a comma: db1,db2.";
  for (const field of pemFields)
    if (values[field] && !values[field].includes("-----BEGIN "))
      faults[field] = "Enter the contents of a PEM file: -----BEGIN ...";
  if (database?.has_password && values.password === "" && leadsElsewhere(values, database))
    faults.password = "Enter it again: with these changes it would be sent elsewhere, or with weaker TLS.";
  return faults;
}

/** Whether the stored password would go to another place than it was given for. The API has the last word. */
function leadsElsewhere(values: DatabaseFormValues, database: Database): boolean {
  const { host, port, dbname, user, sslmode } = settings(values);
  return (
    host !== database.host ||
    port !== database.port ||
    dbname !== database.dbname ||
    user !== database.user ||
    sslModes.indexOf(sslmode) < sslModes.indexOf(database.sslmode) ||
    (database.sslrootcert !== null && values.sslrootcert !== "") ||
    (database.sslcrl !== null && values.sslcrl !== "")
  );
}

function settings(values: DatabaseFormValues) {
  const { host, dbname, user, sslmode, password, read_from } = values;
  return { host: host.trim(), port: Number(values.port), dbname, user, password, sslmode, read_from };
}

function givenPem(values: DatabaseFormValues): Partial<Record<PemField, string>> {
  return Object.fromEntries(pemFields.flatMap((field) => (values[field] ? [[field, values[field]]] : [])));
}

/** Without what older versions kept as paths of files: these are fields of their own now. */
function options(values: DatabaseFormValues): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values.options).filter(([name]) => !pemFields.some((field) => field === name)),
  );
}

/** Of a body that says everything: the API has the same defaults. */
function complete(values: DatabaseFormValues) {
  return {
    ...settings(values),
    service: "",
    sslrootcert: values.sslrootcert ?? "",
    sslcert: values.sslcert ?? "",
    sslkey: values.sslkey ?? "",
    sslcrl: values.sslcrl ?? "",
    options: options(values),
  };
}

export function toCreate(values: DatabaseFormValues): DatabaseCreate {
  return { name: values.name.trim(), ...complete(values) };
}

export function toTest(values: DatabaseFormValues, database: Database | null): DatabaseTest {
  return { ...complete(values), database_id: database?.id ?? null };
}

/** Only what differs; an empty password means "as it was". */
export function toUpdate(values: DatabaseFormValues, database: Database): DatabaseUpdate {
  const before = toFormValues(database);
  const after = { ...settings(values), name: values.name.trim() };
  const changed = Object.entries(after).filter(
    ([field, value]) =>
      value !== before[field as keyof DatabaseFormValues] && !(field === "password" && value === ""),
  );
  const removed = pemFields.flatMap((field) => (values[field] === null ? [[field, ""]] : []));
  const otherOptions = values.options === database.options ? {} : { options: options(values) };
  return {
    ...Object.fromEntries(changed),
    ...otherOptions,
    ...givenPem(values),
    ...Object.fromEntries(removed),
  };
}
