// Where the stack under test is, and how to get in. run.sh starts it and passes on what its settings say.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

function setting(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: start the journeys with e2e/run.sh`);
  return value;
}

/** A secret that the stack's scripts made, by name. */
function secret(name: string): string {
  return readFileSync(join(setting("THALWEG_SECRETS"), name), "utf8").trim();
}

export interface Cluster {
  host: string;
  port: number;
  /** The superuser's password. */
  superuser: string;
  /** The password of the role 'thalweg', which Thalweg itself uses. */
  thalweg: string;
}

export const stack = {
  consoleUrl: setting("THALWEG_API_URL"),
  admin: { name: "admin", password: setting("E2E_ADMIN_PASSWORD") },
  apiToken: () => secret("api-token"),
  postgresBinaries: setting("THALWEG_PG_BIN"),
  engineBinary: setting("THALWEG_ENGINE_BINARY"),
  source: cluster("source", setting("THALWEG_SOURCE_PORT")),
  destination: cluster("destination", setting("THALWEG_DESTINATION_PORT")),
  /** The role that owns the tables at the source and writes to them, as an application would. */
  application: { user: "shop", password: secret("source-shop") },
  /** The demo's destination is reached over the lab's relay. */
  demo: {
    stream: "shop to warehouse",
    source: "shop",
    destination: "warehouse",
    destinationPort: Number(setting("THALWEG_RELAY_PORT")),
  },
};

function cluster(name: string, port: string): Cluster {
  return {
    host: "127.0.0.1",
    port: Number(port),
    superuser: secret(`${name}-superuser`),
    thalweg: secret(`${name}-thalweg`),
  };
}

export const SESSION_FILE = fileURLToPath(new URL("../test-results/session.json", import.meta.url));

/** Told apart from those of an earlier run on a stack that was kept. */
export const RUN = setting("E2E_RUN");
