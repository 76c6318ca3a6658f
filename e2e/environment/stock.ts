// A table without a key, as old applications have them: its rows are found by an index at the source. At the destination
// that index is missing.
import { fileURLToPath } from "node:url";
import { type APIRequestContext, expect } from "@playwright/test";
import { Load, sql } from "./postgres.ts";
import { type Cluster, RUN, stack } from "./stack.ts";

const LOAD_SCRIPT = fileURLToPath(new URL("./stock-load.sql", import.meta.url));
const headers = { Authorization: `Bearer ${stack.apiToken()}` };
const dbname = `stock_${RUN}`;

const SCHEMA = `
CREATE TABLE stock (id int NOT NULL, amount int NOT NULL, place text NOT NULL);
INSERT INTO stock SELECT n, 0, repeat('shelf ', 10) FROM generate_series(1, 300000) n;
CREATE INDEX stock_by_id ON stock (id);
ALTER TABLE stock REPLICA IDENTITY FULL`;

async function post(request: APIRequestContext, path: string, data: object) {
  const answer = await request.post(`/api/v1/${path}`, { headers, data });
  expect(answer.ok(), await answer.text()).toBe(true);
  return answer.json();
}

export const stock = {
  name: `stock ${RUN}`,
  table: "stock",
  atDestination: (text: string) => sql(stack.destination, dbname, text),
  load: (rate: number, seconds: number) =>
    new Load(stack.source, dbname, { script: `--file=${LOAD_SCRIPT}`, rate, seconds }),

  /** A stream that replicates it, past the wizard; answers the stream's id. */
  async replicate(request: APIRequestContext): Promise<string> {
    const { source, destination, application } = stack;
    await sql(source, "postgres", `CREATE DATABASE ${dbname} OWNER ${application.user}`);
    await sql(source, dbname, SCHEMA, application);
    await sql(source, "postgres", `GRANT CREATE ON DATABASE ${dbname} TO thalweg`);
    await sql(destination, "postgres", `CREATE DATABASE ${dbname} OWNER thalweg`);
    const register = async (name: string, { host, port, thalweg }: Cluster) =>
      (await post(request, "databases", { name, host, port, dbname, user: "thalweg", password: thalweg })).id;
    const { stream_id } = await post(request, "streams", {
      name: stock.name,
      source_id: await register(`${stock.name}: shop`, source),
      destinations: [{ database_id: await register(`${stock.name}: depot`, destination) }],
      rules: { include: [{ schema: "public", table: "stock" }] },
      // Creating an index waits for the transactions that are open: bounded, however far behind the stream is.
      parameters: { group_size: 100 },
    });
    await expect
      .poll(
        async () => (await (await request.get(`/api/v1/streams/${stream_id}`, { headers })).json()).phase,
        { message: "the stream replicates" },
      )
      .toBe("REPLICATING");
    await this.atDestination("DROP INDEX IF EXISTS stock_by_id");
    await this.atDestination("ANALYZE stock");
    return stream_id;
  },

  async forget(request: APIRequestContext, stream: string): Promise<void> {
    const answer = await request.delete(`/api/v1/streams/${stream}`, { headers });
    expect(answer.status(), await answer.text()).toBe(202);
  },
};
