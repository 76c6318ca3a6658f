// A path of an analysis as the view draws it: stages from left to right, each with its threads. Pure, so that runs,
// live samples and history look the same.
import type { AdvisorAnalysis, AdvisorComponent, ComponentStatistic, PathBottleneck } from "@/api/types";
import { activityOfEvent, stageInWords } from "@/lib/advisor";
import { type Maybe, percent, type Quantity } from "@/lib/format";

export interface Shares {
  /** By the keys of lib/activities, in percent; they sum to 100. */
  activities: Record<string, number>;
  idle: number;
  flowControl: number;
  /** Neither idle nor held back. */
  occupied: number;
}

export interface Thread {
  key: string;
  label: string;
  number: number | null;
  shares: Shares | null;
  messageRate: number | null;
  transactionRate: number | null;
  /** The busiest thread of the bottleneck. */
  top: boolean;
}

export interface Stage {
  key: string;
  componentId: string;
  type: AdvisorComponent["component_type"];
  subComponent: string | null;
  title: string;
  name: string;
  database: string;
  engine: string | null;
  /** Momentary; null where it belongs to the whole component. */
  state: string | null;
  /** Messages that pass: LCRs a second, or transactions where the component does not see LCRs. */
  messageRate: number | null;
  transactionRate: number | null;
  /** From the commit at the source until here, in seconds. */
  latency: number | null;
  shares: Shares | null;
  threads: Thread[];
  queue: { depth: number | null; capacity: number | null; bytes: number | null; fill: number | null } | null;
  spill: { bytes: number | null; transactions: number | null; rate: number | null } | null;
  bottleneck: boolean;
  /** Title of the stage that holds it back. */
  heldBackBy: string | null;
  statistics: ComponentStatistic[];
}

export interface PathModel {
  stages: Stage[];
  bottleneck: PathBottleneck | null;
  /** Path statistics by name. */
  figures: Record<string, number | null>;
}

const MESSAGE_RATES = ["MESSAGE APPLY RATE", "DEQUEUE RATE", "RECEIVE RATE", "SEND RATE", "ENQUEUE RATE"];
const TRANSACTION_RATES = ["TRANSACTION APPLY RATE", "TRANSACTION RATE"];
const SUB_COMPONENTS = ["APPLY READER", "APPLY COORDINATOR", "APPLY SERVER"];
/** Rounding of three events must not look like a fourth. */
const OTHER_MIN = 0.5;

type Values = Map<string, number | null>;

function valuesOf(rows: ComponentStatistic[]): Values {
  return new Map(rows.map((row) => [row.statistic_name, row.statistic_value]));
}

function firstOf(values: Values, names: string[]): number | null {
  for (const name of names) {
    const value = values.get(name);
    if (value !== undefined) return value;
  }
  return null;
}

/** Of 100. */
export function percentOf(share: Maybe): Quantity {
  if (share === 0) return { value: "0", unit: "%" };
  return percent(share === null || share === undefined ? share : share / 100);
}

export function sharesOf(values: Values): Shares | null {
  const idle = values.get("IDLE");
  const flowControl = values.get("FLOW CONTROL");
  if (idle === null || idle === undefined || flowControl === null || flowControl === undefined) return null;
  const activities: Record<string, number> = { idle, flow_control: flowControl };
  let named = idle + flowControl;
  for (const [name, value] of values) {
    if (!name.startsWith("EVENT: ") || value === null) continue;
    activities[activityOfEvent(name)] = value;
    named += value;
  }
  if (100 - named > OTHER_MIN) activities.other = 100 - named;
  return { activities, idle, flowControl, occupied: Math.max(0, 100 - idle - flowControl) };
}

export function pathModel(analysis: AdvisorAnalysis, pathId: string): PathModel {
  const path = analysis.paths.find(({ path_id }) => path_id === pathId);
  const bottleneck = analysis.path_bottlenecks.find(({ path_id }) => path_id === pathId) ?? null;
  const components = (path?.component_ids ?? []).flatMap(
    (id) => analysis.components.find(({ component_id }) => component_id === id) ?? [],
  );
  const stages = components.flatMap((component) => stagesOf(analysis, component, bottleneck));
  markHeldBack(stages, analysis, pathId);
  return {
    stages,
    bottleneck,
    figures: Object.fromEntries(
      analysis.path_statistics
        .filter((row) => row.path_id === pathId)
        .map((row) => [row.statistic_name, row.statistic_value]),
    ),
  };
}

/** Apply shows as its sub-components: each of them may be the bottleneck. */
function stagesOf(
  analysis: AdvisorAnalysis,
  component: AdvisorComponent,
  bottleneck: PathBottleneck | null,
): Stage[] {
  const rows = analysis.component_statistics.filter((row) => row.component_id === component.component_id);
  const subs = SUB_COMPONENTS.filter((sub) => rows.some((row) => row.sub_component_type === sub));
  if (component.component_type !== "APPLY" || subs.length === 0)
    return [stageOf(component, null, rows, bottleneck)];
  const latency = valuesOf(rows.filter((row) => row.sub_component_type === null)).get("LATENCY") ?? null;
  return subs.map((sub) => {
    const stage = stageOf(
      component,
      sub,
      rows.filter((row) => row.sub_component_type === sub),
      bottleneck,
    );
    return sub === "APPLY SERVER" ? { ...stage, latency } : { ...stage, state: null };
  });
}

function stageOf(
  component: AdvisorComponent,
  subComponent: string | null,
  rows: ComponentStatistic[],
  bottleneck: PathBottleneck | null,
): Stage {
  const values = valuesOf(rows.filter((row) => row.thread === null));
  const isBottleneck =
    bottleneck?.bottleneck_identified === true &&
    bottleneck.component_id === component.component_id &&
    bottleneck.sub_component_type === subComponent;
  const messageRates =
    component.component_type === "CAPTURE" ? ["CAPTURE RATE", ...MESSAGE_RATES] : MESSAGE_RATES;
  return {
    key: `${component.component_id}/${subComponent ?? ""}`,
    componentId: component.component_id,
    type: component.component_type,
    subComponent,
    title: stageInWords(component.component_type, subComponent, component.component_id),
    name: component.component_name,
    database: component.component_db,
    engine: component.engine,
    state: component.state,
    messageRate: firstOf(values, messageRates),
    transactionRate: firstOf(values, TRANSACTION_RATES),
    latency: values.get("LATENCY") ?? null,
    shares: component.component_type === "QUEUE" ? null : sharesOf(values),
    threads: threadsOf(subComponent, rows, isBottleneck ? (bottleneck?.top_thread ?? null) : null),
    queue:
      component.component_type === "QUEUE"
        ? {
            depth: values.get("CURRENT QUEUE SIZE") ?? null,
            capacity: values.get("QUEUE CAPACITY") ?? null,
            bytes: values.get("QUEUE MEMORY USED") ?? null,
            fill: values.get("QUEUE FILL") ?? null,
          }
        : null,
    spill: values.has("SPILL RATE")
      ? {
          bytes: values.get("SPILLED NOW") ?? null,
          transactions: values.get("SPILLED TRANSACTIONS") ?? null,
          rate: values.get("SPILL RATE") ?? null,
        }
      : null,
    bottleneck: isBottleneck,
    heldBackBy: null,
    statistics: rows,
  };
}

function threadsOf(subComponent: string | null, rows: ComponentStatistic[], top: number | null): Thread[] {
  const numbers = [...new Set(rows.flatMap((row) => (row.thread === null ? [] : [row.thread])))];
  return numbers
    .sort((a, b) => a - b)
    .map((number) => {
      const values = valuesOf(rows.filter((row) => row.thread === number));
      return {
        key: `${subComponent}-${number}`,
        label: `Applier ${number}`,
        number,
        shares: sharesOf(values),
        messageRate: firstOf(values, MESSAGE_RATES),
        transactionRate: firstOf(values, TRANSACTION_RATES),
        top: number === top,
      };
    });
}

/** 0..1 of the time in statements that is waiting for a lock: the analysis knows it where it has looked. */
export function lockedShare(shares: Shares | null): number {
  const { lock = 0, execute = 0 } = shares?.activities ?? {};
  return lock > 0 ? lock / (lock + execute) : 0;
}

/** Links between components come from the analysis; inside apply, flow control says the same. */
function markHeldBack(stages: Stage[], analysis: AdvisorAnalysis, pathId: string): void {
  const links = analysis.component_links.filter((link) => link.path_id === pathId && link.back_pressured);
  stages.forEach((stage, index) => {
    const next = stages[index + 1];
    if (!next) return;
    const within = next.componentId === stage.componentId;
    const held = within
      ? (stage.shares?.flowControl ?? 0) > analysis.thresholds.flow_control
      : links.some(
          (link) =>
            link.source_component_id === stage.componentId &&
            link.destination_component_id === next.componentId,
        );
    if (held) stage.heldBackBy = next.title;
  });
}

/** Stages of one engine stand in one row: a path over two engines has two. */
export function byEngine(stages: Stage[]): { engine: string | null; stages: Stage[] }[] {
  const rows: { engine: string | null; stages: Stage[] }[] = [];
  for (const stage of stages) {
    const last = rows.at(-1);
    if (last && last.engine === stage.engine) last.stages.push(stage);
    else rows.push({ engine: stage.engine, stages: [stage] });
  }
  return rows;
}
