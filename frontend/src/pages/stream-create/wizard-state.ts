// The wizard's state and what each step needs before the next one opens. Pure: tested without a browser.
import type {
  CaptureKind,
  Engine,
  ParameterValue,
  ScopedRules,
  StreamCreate,
  StreamParameter,
  TableRules,
} from "@/api/types";
import { anyFault, changedValues, defaults } from "@/features/parameters/parameter-values";
import { completeRules } from "@/features/table-rules/matching";

export const steps = ["source", "destination", "tables", "preflight", "parameters", "review"] as const;
export type Step = (typeof steps)[number];

export const stepLabels: Record<Step, { label: string; description: string }> = {
  source: { label: "Source", description: "Where changes come from" },
  destination: { label: "Destination", description: "Where they go" },
  tables: { label: "Tables", description: "Which ones" },
  preflight: { label: "Preflight", description: "Ready to start?" },
  parameters: { label: "Parameters", description: "How to run it" },
  review: { label: "Review", description: "Name and create" },
};

export interface WizardState {
  sourceId: string | null;
  captureKind: CaptureKind;
  /** In the order of choice. Several share one capture and one queue. */
  destinationIds: string[];
  /** Captures; also applies, where no other engine is chosen for that. */
  engineId: string | null;
  /** By the destination's database; what is missing is the same engine. */
  applyEngineIds: Record<string, string>;
  rules: TableRules;
  /** By the destination's database: the rules of its own. */
  destinationRules: Record<string, ScopedRules[]>;
  /** Consents of checks. One that the checks ask for no longer does nothing. */
  accepted: string[];
  parameters: Record<string, ParameterValue>;
  name: string;
  start: boolean;
}

/** Rules that nobody has touched: these two objects themselves, not others of the same contents. */
export const publicRules: TableRules = { include: [{ schema: "public", table: "*" }], exclude: [] };
export const noRules: TableRules = { include: [], exclude: [] };

/** Rules to begin with at this source: where `public` is empty, its rule would only be a warning to get rid of. */
export function untouchedRules(rules: TableRules, tables: readonly { schema: string }[]): TableRules {
  if (rules !== publicRules && rules !== noRules) return rules;
  return tables.some(({ schema }) => schema === "public") ? publicRules : noRules;
}

export const emptyWizard: WizardState = {
  sourceId: null,
  captureKind: "logical",
  destinationIds: [],
  engineId: null,
  applyEngineIds: {},
  rules: publicRules,
  destinationRules: {},
  accepted: [],
  parameters: {},
  name: "",
  start: true,
};

/** Facts that the pages have learned from the API. */
export interface WizardFacts {
  engines: readonly Engine[];
  /** Tables that the rules match and that can be replicated; null while unknown. */
  replicable: number | null;
  /** Null while the checks run or have failed to run. */
  preflightReady: boolean | null;
  definitions: StreamParameter[];
}

/** Why the wizard cannot go on from this step, or null when it can. */
export function stepFault(step: Step, state: WizardState, facts: WizardFacts): string | null {
  switch (step) {
    case "source":
      return state.sourceId ? null : "Choose the source database.";
    case "destination":
      if (state.destinationIds.length === 0) return "Choose the destination database, or several.";
      if (state.destinationIds.includes(state.sourceId ?? ""))
        return "Source and destination must be two databases.";
      if (facts.engines.length === 0) return "No engine is enrolled.";
      if (facts.engines.length > 1 && !state.engineId) return "Choose the engine that runs the stream.";
      return placementFault(state, facts.engines);
    case "tables":
      if (completeRules(state.rules).include.length === 0) return "Include at least one table pattern.";
      if (facts.replicable === null) return "Wait until the patterns are evaluated.";
      return facts.replicable > 0 ? null : "The patterns match no table that can be replicated.";
    case "preflight":
      if (facts.preflightReady === null) return "Wait until the checks are done.";
      return facts.preflightReady
        ? null
        : "Fix what the failed checks name, run them again, and accept those that need your consent.";
    case "parameters":
      return anyFault(facts.definitions, { ...defaults(facts.definitions), ...state.parameters })
        ? "A value is out of range."
        : null;
    case "review":
      return state.name.trim() === "" ? "Enter a name for the stream." : null;
  }
}

/** The engine that applies at a destination, when another one captures. */
export function applyEngineId(state: WizardState, databaseId: string): string | null {
  const chosen = state.applyEngineIds[databaseId];
  return chosen && chosen !== state.engineId ? chosen : null;
}

/** Why these engines cannot work together, or null when they can. */
function placementFault(state: WizardState, engines: readonly Engine[]): string | null {
  const find = (wanted: string | null) => engines.find(({ id }) => id === wanted);
  const capture = find(state.engineId);
  const others = state.destinationIds
    .map((id) => find(applyEngineId(state, id)))
    .filter((engine): engine is Engine => engine !== undefined);
  if (others.length === 0) return null;
  const nameless = [capture, ...others].find((engine) => engine && engine.identity === null);
  if (nameless) return `${nameless.name} has no identity yet: it must be online and of this version.`;
  const unreached = others.find((engine) => engine.propagation_address === null);
  if (unreached)
    return `Other engines do not know where to reach ${unreached.name}: set its address on the Engines page.`;
  const twice = others.find((engine, place) => others.indexOf(engine) !== place);
  return twice ? `${twice.name} can receive for only one destination of a stream.` : null;
}

/** The first step that is not done: as far as the wizard may be opened. */
export function furthestStep(state: WizardState, facts: WizardFacts): number {
  const open = steps.findIndex((step) => stepFault(step, state, facts) !== null);
  return open === -1 ? steps.length - 1 : open;
}

/** Changes the source, and drops the later answers that this makes obsolete. */
export function withSource(state: WizardState, sourceId: string): WizardState {
  if (sourceId === state.sourceId) return state;
  const destinationIds = state.destinationIds.filter((id) => id !== sourceId);
  const { rules, destinationRules } = emptyWizard;
  return { ...state, sourceId, destinationIds, rules, destinationRules };
}

function destinations(state: WizardState): StreamCreate["destinations"] {
  return state.destinationIds.map((id) => {
    const engineId = applyEngineId(state, id);
    const rules = state.destinationRules[id] ?? [];
    return {
      database_id: id,
      ...(engineId ? { engine_id: engineId } : {}),
      ...(rules.length > 0 ? { row_rules: rules } : {}),
    };
  });
}

/** The request's body: only parameters that differ from their defaults are sent. */
export function toStreamCreate(state: WizardState, definitions: StreamParameter[]): StreamCreate {
  return {
    name: state.name.trim(),
    source_id: state.sourceId ?? "",
    ...(state.engineId ? { capture_engine_id: state.engineId } : {}),
    destinations: destinations(state),
    capture_kind: state.captureKind,
    rules: completeRules(state.rules),
    parameters: changedValues(defaults(definitions), state.parameters),
    ...(state.accepted.length > 0 ? { accept: state.accepted } : {}),
    start: state.start,
  };
}
