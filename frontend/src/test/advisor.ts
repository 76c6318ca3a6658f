// An advisor's analysis and run as the API answers them, for tests.
import type {
  AdvisorAnalysis,
  AdvisorComponent,
  AdvisorRun,
  ComponentStatistic,
  Finding,
  LiveAnalysis,
  PathBottleneck,
} from "@/api/types";

const AT = "2026-11-21T00:00:05Z";
type Type = AdvisorComponent["component_type"];

export function statistic(
  component_id: string,
  component_type: Type,
  statistic_name: string,
  statistic_value: number | null,
  values: Partial<ComponentStatistic> = {},
): ComponentStatistic {
  return {
    component_id,
    component_name: "orders to warehouse",
    component_db: "orders",
    component_type,
    sub_component_type: null,
    thread: null,
    statistic_time: AT,
    statistic_name,
    statistic_value,
    statistic_unit: /RATE/.test(statistic_name) ? "MESSAGES PER SECOND" : "PERCENT",
    ...values,
  };
}

function component(name: string, type: Type, engine: string): AdvisorComponent {
  return {
    component_id: `stream01:${name}`,
    component_name: "orders to warehouse",
    component_db: type === "APPLY" ? "warehouse" : "orders",
    component_type: type,
    engine,
    stream_id: "stream01",
    state: "IDLE",
    parts: [name],
  };
}

const noBottleneck: PathBottleneck = {
  path_id: "stream01",
  bottleneck_identified: false,
  component_id: null,
  component_name: null,
  component_db: null,
  component_type: null,
  sub_component_type: null,
  top_thread: null,
  action_name: null,
  top_event: null,
  top_event_percent: null,
  idle_percent: null,
  flow_control_percent: null,
  advisor_run_reason: "NO BOTTLENECK IDENTIFIED",
  verdict: "NO BOTTLENECK",
  explanation: "No bottleneck: the least idle stage, APPLY SERVER, is idle 98 % of the time.",
};

interface AnalysisShape {
  statistics?: ComponentStatistic[];
  bottleneck?: Partial<PathBottleneck>;
  /** Positions of links. */
  backPressured?: number[];
  readerFlowControl?: number;
  applyEngine?: string;
}

/** Capture, queue and apply of one stream, with the statistics that every analysis has. */
export function analysis(shape: AnalysisShape = {}): AdvisorAnalysis {
  const { statistics = [], bottleneck, backPressured = [], readerFlowControl = 0, applyEngine } = shape;
  const components = [
    component("capture", "CAPTURE", "engine-1"),
    component("queue", "QUEUE", "engine-1"),
    component("apply", "APPLY", applyEngine ?? "engine-1"),
  ];
  const apply = (sub: string, name: string, value: number) =>
    statistic("stream01:apply", "APPLY", name, value, { sub_component_type: sub });
  return {
    begin_at: AT,
    end_at: "2026-11-21T00:00:35Z",
    samples: 30,
    thresholds: { idle: 50, flow_control: 50, event: 15 },
    paths: [
      {
        path_id: "stream01",
        stream_id: "stream01",
        stream_name: "orders to warehouse",
        path_name: "orders to warehouse → warehouse",
        destination_id: "warehouse",
        source_db: "orders",
        destination_db: "warehouse",
        component_ids: components.map(({ component_id }) => component_id),
        combined: true,
      },
    ],
    databases: [],
    components,
    component_links: components.slice(1).map((to, index) => {
      const from = components[index] as AdvisorComponent;
      return {
        path_id: "stream01",
        position: index + 1,
        source_component_id: from.component_id,
        source_component_name: from.component_name,
        source_component_db: from.component_db,
        source_component_type: from.component_type,
        destination_component_id: to.component_id,
        destination_component_name: to.component_name,
        destination_component_db: to.component_db,
        destination_component_type: to.component_type,
        back_pressured: backPressured.includes(index + 1),
        messages_per_second: 40,
      };
    }),
    component_statistics: [
      statistic("stream01:capture", "CAPTURE", "CAPTURE RATE", 40),
      statistic("stream01:queue", "QUEUE", "QUEUE FILL", 95),
      apply("APPLY READER", "DEQUEUE RATE", 40),
      apply("APPLY READER", "IDLE", 100 - readerFlowControl),
      apply("APPLY READER", "FLOW CONTROL", readerFlowControl),
      apply("APPLY COORDINATOR", "TRANSACTION RATE", 10),
      ...(statistics.length > 0 ? statistics : [apply("APPLY SERVER", "MESSAGE APPLY RATE", 40)]),
    ],
    path_statistics: [],
    path_bottlenecks: [
      bottleneck
        ? {
            ...noBottleneck,
            bottleneck_identified: true,
            component_id: "stream01:apply",
            component_type: "APPLY",
            verdict: "BOTTLENECK",
            advisor_run_reason: null,
            explanation: "APPLY SERVER is 95 % occupied over 2 threads: 90 % LOCK.",
            ...bottleneck,
          }
        : noBottleneck,
    ],
  };
}

export const finding: Finding = {
  id: "apply_parallelism/stream01",
  rank: 1,
  path_id: "stream01",
  stream_id: "stream01",
  component_id: "stream01:apply",
  code: "apply_parallelism",
  severity: "warning",
  is_cause: true,
  title: "All appliers are busy",
  explanation: "Four appliers are busy nearly all of the time, and nothing holds them back.",
  evidence: [
    {
      statistic: "IDLE",
      subject: "server-1",
      value: 5,
      unit: "PERCENT",
      threshold: 50,
      since: AT,
      series: "server-1.time_percent.idle",
    },
  ],
  expected_gain: "Up to twice the rate.",
  gain_percent: 100,
  cures: [
    {
      kind: "parameter",
      text: "Give apply more appliers.",
      parameters: [{ name: "parallelism", current: 4, proposed: 8 }],
      sql: null,
      database: null,
      database_id: null,
      run_as: null,
      restart_needed: false,
      index: null,
      destination_id: null,
    },
  ],
};

const INDEX_SQL = "CREATE UNIQUE INDEX CONCURRENTLY item_thalweg_key ON public.item (id);";

export const missingIndex: Finding = {
  ...finding,
  id: "stream01:apply_missing_index:public.item",
  code: "apply_missing_index",
  title: "public.item has no index for its key at the destination",
  cures: [
    {
      kind: "sql",
      text: "Create an index on the key of public.item; writers are not blocked meanwhile.",
      parameters: [],
      sql: INDEX_SQL,
      database: "warehouse",
      database_id: "database2",
      run_as: "the table's owner or a superuser",
      restart_needed: false,
      index: { schema_name: "public", table: "item", name: "item_thalweg_key" },
      destination_id: null,
    },
  ],
};

export const slowTrigger: Finding = {
  ...finding,
  id: "stream01:apply_trigger:public.item.audit",
  code: "apply_trigger",
  title: "A trigger fires for every change that is applied to public.item",
  cures: [
    {
      kind: "sql",
      text: "Let the trigger fire for local changes only.",
      parameters: [],
      sql: "ALTER TABLE public.item ENABLE TRIGGER audit;",
      database: "warehouse",
      database_id: "database2",
      run_as: "the table's owner or a superuser",
      restart_needed: false,
      index: null,
      destination_id: null,
    },
  ],
};

export function advisorRun(values: Partial<AdvisorRun> = {}): AdvisorRun {
  const whole =
    values.analysis ?? analysis({ bottleneck: { sub_component_type: "APPLY SERVER", top_event: "LOCK" } });
  const [bottleneck] = whole.path_bottlenecks;
  return {
    id: 7,
    at: AT,
    reason: "on_demand",
    detail: null,
    requested_by: "admin",
    name: null,
    note: null,
    kept: false,
    etag: '"1"',
    scope: { stream_id: null, component_id: null, window_seconds: 30 },
    begin_at: whole.begin_at,
    end_at: whole.end_at,
    samples: whole.samples,
    paths: [
      {
        path_id: "stream01",
        stream_id: "stream01",
        stream_name: "orders to warehouse",
        path_name: "orders to warehouse → warehouse",
        source_db: "orders",
        destination_db: "warehouse",
        verdict: bottleneck?.verdict ?? "UNKNOWN",
        bottleneck_identified: bottleneck?.bottleneck_identified ?? false,
        component_id: bottleneck?.component_id ?? null,
        component_type: bottleneck?.component_type ?? null,
        sub_component_type: bottleneck?.sub_component_type ?? null,
        top_event: bottleneck?.top_event ?? null,
        explanation: bottleneck?.explanation ?? "",
        messages_per_second: 40,
        transactions_per_second: 10,
        latency_p50_seconds: 0.002,
        latency_p99_seconds: 1.5,
        latency_at_least_seconds: null,
        lag_bytes: 1024,
        top_finding: finding.title,
        top_finding_code: finding.code,
      },
    ],
    findings: 1,
    worst: "warning",
    analysis: whole,
    findings_ranked: [finding],
    fact_sheets: [],
    series: [],
    ...values,
  };
}

/** An analysis of a stream as of now, of which nothing is kept. */
export function liveAnalysis(whole = analysis(), findings: Finding[] = []): LiveAnalysis {
  const paths = advisorRun().paths.map((path) => {
    const top = findings.find(({ path_id }) => path_id === path.path_id);
    return { ...path, top_finding: top?.title ?? null, top_finding_code: top?.code ?? null };
  });
  return { at: AT, live: true, analysis: whole, paths, findings_ranked: findings };
}
