// Resources as the API answers them, for tests.
import type {
  Check,
  ComponentSample,
  Database,
  Engine,
  Lag,
  Operation,
  Problem,
  Sample,
  Session,
  SourceTable,
  Stream,
  StreamDestination,
  StreamParameter,
} from "@/api/types";

const AT = "2026-11-21T00:00:05Z";

/** Nothing is known of it. */
export function lag(values: Partial<Lag> = {}): Lag {
  return {
    bytes: null,
    seconds: null,
    age_seconds: null,
    growth_bytes_per_second: null,
    seconds_to_full: null,
    reached_limit: null,
    applied: null,
    source_read_at: null,
    ...values,
  };
}

export const session: Session = {
  user: {
    id: "user0001",
    name: "admin",
    role: "admin",
    enabled: true,
    second_factor: false,
    created_at: AT,
    updated_at: AT,
    etag: '"1"',
  },
  csrf_token: "csrf",
  expires_at: null,
  second_factor_missing: false,
};

export function database(id: string, name: string): Database {
  return {
    id,
    name,
    host: "127.0.0.1",
    port: 5432,
    dbname: "demo",
    user: "thalweg",
    sslmode: "prefer",
    options: {},
    read_from: "primary",
    sslrootcert: null,
    sslcert: null,
    sslkey: null,
    sslcrl: null,
    has_password: true,
    version: "15.20",
    tested_at: AT,
    test_code: null,
    source_of: [],
    destination_of: [],
    created_at: AT,
    updated_at: AT,
    etag: '"1"',
  };
}

export const engine: Engine = {
  id: "engine01",
  name: "engine-1",
  url: "http://127.0.0.1:8643",
  state: "ONLINE",
  message: null,
  version: "0.1.0",
  hostname: "host",
  pid: 1,
  started_at: AT,
  last_seen_at: AT,
  resident_bytes: 1024,
  cpu_percent: 1,
  desired_revision: 1,
  acknowledged_revision: 1,
  streams: [],
  unknown_streams: [],
  created_at: AT,
  identity: null,
  propagation_address: null,
  propagation_address_set: false,
  wal_archives: [],
  etag: '"1"',
};

/** Another one, which takes propagations. */
export const receivingEngine: Engine = {
  ...engine,
  id: "engine02",
  name: "engine-2",
  identity: { name: "engine-engine02", fingerprint: "9f86", not_after: AT, listen: "10.0.0.2:8644" },
  propagation_address: "10.0.0.2:8644",
};

export function component(id: string, values: Partial<ComponentSample> = {}): ComponentSample {
  return {
    id,
    destination_id: null,
    engine_id: "engine01",
    type: "APPLY",
    name: "apply",
    sub_component: null,
    server: null,
    state: "IDLE",
    lcrs_per_second: null,
    transactions_per_second: null,
    bytes_per_second: null,
    time_percent: null,
    counters: { lcrs: 0, transactions: 0, bytes: 0 },
    gauges: {},
    counter_rates: null,
    ...values,
  };
}

export function ofWarehouse(id: string, values: Partial<ComponentSample> = {}): ComponentSample {
  return component(`warehouse:${id}`, { destination_id: "warehouse", ...values });
}

export const components: ComponentSample[] = [
  component("capture", { type: "CAPTURE", state: "CAPTURING CHANGES" }),
  component("queue", {
    type: "QUEUE",
    state: "NORMAL",
    counters: { lcrs: 0, bytes: 0 },
    gauges: { depth: 4, capacity: 16383 },
  }),
  ofWarehouse("reader", { sub_component: "APPLY READER" }),
  ofWarehouse("coordinator", { sub_component: "APPLY COORDINATOR", counters: { transactions: 0 } }),
  ofWarehouse("server-2", { sub_component: "APPLY SERVER", server: 2 }),
  ofWarehouse("server-1", { sub_component: "APPLY SERVER", server: 1, state: "EXECUTE TRANSACTION" }),
];

/** Of a stream over two engines, in the order of the path. */
export const propagated: ComponentSample[] = [
  component("capture", { type: "CAPTURE" }),
  component("queue", { type: "QUEUE", counters: { lcrs: 0 } }),
  ofWarehouse("sender", { type: "PROPAGATION SENDER", state: "SENDING LCRS" }),
  ...[
    ofWarehouse("receiver", { type: "PROPAGATION RECEIVER", state: "RECEIVING LCRS" }),
    ofWarehouse("apply-queue", { type: "QUEUE", counters: { lcrs: 0 } }),
    ...components.slice(2),
  ].map((part) => ({ ...part, engine_id: "engine02" })),
];

/** The first sample of a stream: no rate is known yet. */
export function sample(at: string, values: Partial<Sample> = {}): Sample {
  return {
    stream_id: "stream01",
    at,
    interval_seconds: null,
    status: "ENABLED",
    phase: "REPLICATING",
    state: "REPLICATING",
    lcrs_per_second: null,
    transactions_per_second: null,
    bytes_per_second: null,
    latency: { p50_ms: null, p99_ms: null, transactions: null, last: null, at_least: false },
    lag: lag(),
    error_queue_transactions: 0,
    components,
    destinations: [],
    ...values,
  };
}

export function destination(values: Partial<StreamDestination> = {}): StreamDestination {
  return {
    id: "warehouse",
    database: { id: "dest0001", name: "warehouse", address: "127.0.0.1:5433/demo" },
    engine: { id: "engine01", name: "engine-1", state: "ONLINE" },
    mode: "combined",
    desired_status: "ENABLED",
    status: "ENABLED",
    phase: "REPLICATING",
    state: "REPLICATING",
    error: null,
    retry_at: null,
    lcrs_per_second: null,
    transactions_per_second: null,
    latency: { p50_ms: null, p99_ms: null, transactions: null, last: null, at_least: false },
    lag: lag(),
    backlog: null,
    error_queue_transactions: 0,
    error_queue_oldest_at: null,
    parks_since: null,
    stalled_since: null,
    retrying_transactions: 0,
    next_retry: null,
    rows_copied: null,
    rows_to_copy: null,
    actions: [],
    parameters: {},
    effective_parameters: {},
    applied: null,
    confirmed: null,
    instantiation: null,
    counted_since: AT,
    tables: [],
    row_rules: [],
    rule_counts: null,
    in_effect: { under_way: false, from: "0/1A00000", since: AT },
    ...values,
  };
}

export function stream(values: Partial<Stream> = {}): Stream {
  return {
    id: "stream01",
    name: "orders to warehouse",
    source: { id: "source01", name: "orders", address: "127.0.0.1:5432/demo" },
    capture_engine: { id: "engine01", name: "engine-1", state: "ONLINE" },
    capture_kind: "logical",
    destinations: [destination()],
    mode: "combined",
    reports: [],
    desired_status: "ENABLED",
    status: "ENABLED",
    phase: "REPLICATING",
    state: "REPLICATING",
    observed_at: AT,
    health: { level: "ok", reason: "Replicating." },
    error: null,
    retry_at: null,
    waits: [],
    lcrs_per_second: null,
    transactions_per_second: null,
    bytes_per_second: null,
    latency: { p50_ms: null, p99_ms: null, transactions: null, last: null, at_least: false },
    lag: lag(),
    slot: null,
    sampled_at: new Date().toISOString(),
    error_queue_transactions: 0,
    table_count: 1,
    rows_copied: null,
    rows_to_copy: null,
    created_at: AT,
    updated_at: AT,
    etag: '"7"',
    rules: { include: [{ schema: "public", table: "*" }], exclude: [] },
    parameters: {},
    effective_parameters: { parallelism: 4 },
    kind_change: null,
    mask_key_set: false,
    mask_key_version: null,
    restart_needed: false,
    positions: null,
    tables: [
      {
        schema: "public",
        table: "orders",
        destination_name: { schema: "public", table: "orders" },
        inserts_only: false,
        filtered: false,
        state: "REPLICATING",
        trouble: null,
        inserts: 12,
        updates: 3,
        deletes: 1,
        truncates: 0,
        changes_per_second: 4,
        last_change: { at_source: AT, at_destination: AT },
      },
    ],
    rule_counts: null,
    actions: ["stop", "delete"],
    ...values,
  };
}

export const parallelism: StreamParameter = {
  name: "parallelism",
  component: "APPLY",
  type: "integer",
  default: 4,
  minimum: 1,
  maximum: 64,
  values: null,
  unit: "appliers",
  live: true,
  per_destination: true,
  description: "Appliers that execute transactions at the same time.",
};

export const errorPolicies: StreamParameter = {
  name: "error_policies",
  component: "APPLY",
  type: "error_policies",
  default: [],
  minimum: null,
  maximum: null,
  values: null,
  unit: null,
  live: true,
  per_destination: true,
  description: "What happens to a transaction that fails permanently.",
};

export const initialCopy: StreamParameter = {
  name: "initial_copy",
  component: "INSTANTIATION",
  type: "boolean",
  default: true,
  minimum: null,
  maximum: null,
  values: null,
  unit: null,
  live: false,
  per_destination: true,
  description: "On: rows that exist are copied first.",
};

/** A table that cannot be replicated unless its updates and deletes are given up. */
export const keylessTable: SourceTable = {
  schema: "public",
  table: "log",
  kind: "table",
  bytes: 8192,
  rows_estimated: 10,
  key_columns: [],
  replica_identity: "default",
  identified: false,
  inserts_only: false,
  replicable: false,
  unsupported: ["It has neither a primary key nor a replica identity."],
  warnings: [],
};

export function operation(values: Partial<Operation>): Operation {
  return {
    id: "op000001",
    kind: "stream.stop",
    target: {
      type: "stream",
      id: "stream01",
      name: "orders to warehouse",
      destination_id: null,
      destination: null,
      table: null,
    },
    state: "running",
    progress: { done: 0, total: null, unit: "rows" },
    error: null,
    waiting_for: null,
    requested_by: "admin",
    created_at: AT,
    started_at: AT,
    finished_at: null,
    ...values,
  };
}

export function check(values: Partial<Check> = {}): Check {
  return {
    id: "left_out",
    side: "source",
    database_id: null,
    title: "What the copy leaves out",
    status: "ok",
    detail: "The source's tables have comments.",
    items: [],
    cure: null,
    sql: null,
    sql_at: null,
    consent: null,
    accepted: false,
    ...values,
  };
}

/** The answer to a request that these checks stand in the way of. */
export function refusedBy(checks: Check[]): { status: number; body: Problem } {
  const body = {
    type: "urn:thalweg:problem:preflight_failed",
    title: "The databases are not ready for this stream",
    status: 409,
    detail: `${checks.length} checks stand in the way.`,
    instance: "/api/v1/streams/stream01",
    code: "preflight_failed",
    cure: "Do what each of these checks says, then try again.",
    sql: null,
    errors: [],
    checks,
  };
  return { status: body.status, body };
}
