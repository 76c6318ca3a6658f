// A stream that keeps a page busy: 60 tables, two destinations, a sample a second. The control plane is stood in for, so
// that what is measured is the page alone.
import type { Page } from "@playwright/test";
import { analysis, liveAnalysis } from "../../frontend/src/test/advisor.ts";
import { component, components, destination, sample, session, stream } from "../../frontend/src/test/data.ts";

const ID = "stream01";
const TABLES = 60;
const APPLIERS = 4;
const MINUTES = 5;
const ends = ["warehouse", "archive"];

const names = Array.from({ length: TABLES }, (_, number) => ({
  schema: "public",
  table: `orders_${String(number).padStart(2, "0")}`,
}));

const tables = names.map((name, number) => ({
  ...name,
  destination_name: name,
  inserts_only: false,
  filtered: false,
  state: "REPLICATING" as const,
  inserts: 1000 * number,
  updates: 10 * number,
  deletes: number,
  truncates: 0,
  changes_per_second: number,
  last_change: null,
  trouble: null,
}));

const busy = stream({
  id: ID,
  mode: "fan-out",
  table_count: TABLES,
  tables,
  destinations: ends.map((id) =>
    destination({
      id,
      database: { id, name: id, address: `127.0.0.1:5433/${id}` },
      tables,
      actions: ["stop", "drop"],
    }),
  ),
});

const none = { flow_control: 0, network: 0, dependency: 0, commit_order: 0, lock: 0, disk: 0 };
const time = { ...none, busy: 0.4, idle: 0.4, execute: 0.1, commit: 0.1 };
const parts = [
  ...components.slice(0, 2),
  ...ends.flatMap((end) => [
    ...components
      .slice(2, 4)
      .map((part) => ({ ...part, id: part.id.replace("warehouse", end), destination_id: end })),
    ...Array.from({ length: APPLIERS }, (_, server) =>
      component(`${end}:server-${server + 1}`, {
        destination_id: end,
        sub_component: "APPLY SERVER",
        server: server + 1,
      }),
    ),
  ]),
];

/** The numbers change with each one, as those of a stream at work do. */
function sampleAt(at: number) {
  const rate = 20_000 + ((at / 1000) % 997);
  return sample(new Date(at).toISOString(), {
    stream_id: ID,
    interval_seconds: 1,
    lcrs_per_second: rate,
    transactions_per_second: rate / 5,
    bytes_per_second: rate * 150,
    latency: {
      p50_ms: 4 + (rate % 7),
      p99_ms: 9 + (rate % 13),
      transactions: 1000,
      at_least: false,
      last: null,
    },
    lag: {
      bytes: 1024 * rate,
      seconds: 1,
      age_seconds: 1,
      growth_bytes_per_second: 0,
      seconds_to_full: null,
      reached_limit: null,
      applied: null,
      source_read_at: null,
    },
    components: parts.map((part) => ({
      ...part,
      lcrs_per_second: rate,
      transactions_per_second: rate / 5,
      bytes_per_second: rate * 150,
      time_percent: time,
    })),
  });
}

/** Answers what the page of the stream reads, and brings a sample a second. */
export async function standIn(page: Page): Promise<string> {
  const now = Date.now();
  const samples = Array.from({ length: 60 * MINUTES }, (_, back) =>
    sampleAt(now - 1000 * (60 * MINUTES - back)),
  );
  const answers: Record<string, unknown> = {
    "/api/v1/session": session,
    "/api/v1/alerts": { items: [], next_cursor: null },
    "/api/v1/alerts/counts": { firing: 0, critical: 0, unacknowledged: 0, pending: 0 },
    "/api/v1/stream-parameters": { parameters: [] },
    [`/api/v1/streams/${ID}`]: busy,
    [`/api/v1/streams/${ID}/samples`]: { stream_id: ID, samples, live: true },
    "/api/v1/advisor/analysis": liveAnalysis(analysis()),
  };
  await page.route("**/api/v1/**", (route) => {
    const body = answers[new URL(route.request().url()).pathname];
    return body === undefined ? route.fulfill({ status: 404, json: {} }) : route.fulfill({ json: body });
  });
  await page.addInitScript((last: unknown) => {
    class Events extends EventTarget {
      readyState = 1;
      onopen: (() => void) | null = null;
      onerror: (() => void) | null = null;
      constructor() {
        super();
        setTimeout(() => this.onopen?.(), 0);
        setInterval(() => {
          const at = new Date().toISOString();
          const rate = 20_000 + (Date.now() % 9973);
          const data = JSON.stringify({ ...(last as object), at }).replace(
            /"lcrs_per_second":[\d.]+/g,
            `"lcrs_per_second":${rate}`,
          );
          this.dispatchEvent(new MessageEvent("stream.sample", { data }));
        }, 1000);
      }
      close() {}
    }
    Object.assign(window, { EventSource: Events });
  }, sampleAt(now));
  return `/streams/${ID}`;
}
