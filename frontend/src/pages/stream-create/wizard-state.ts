// The wizard's state and what each step needs before the next one opens. Pure: tested without a browser.
import type { Engine, ParameterValue, StreamCreate, StreamParameter, TableRules } from "@/api/types";
import { anyFault, changedValues, defaults } from "@/features/parameters/parameter-values";
import { completeRules } from "@/features/table-rules/matching";

export const steps = ["source", "destination", "tables", "preflight", "parameters", "review"] as const;
export type Step = (typeof steps)[number];

export const stepLabels: Record<Step, { label: string; description: string }> = {
  source: { label: "Source", description: "Where changes come from" },
  destination: { label: "Destination", description: "Where they go" },
  tables: { label: "Tables", description: "Which ones" },
  preflight: { label: "Preflight", description: "Is all ready?" },
  parameters: { label: "Parameters", description: "How to run it" },
  review: { label: "Review", description: "Name and create" },
};

export interface WizardState {
  sourceId: string | null;
  destinationId: string | null;
  /** Captures; also applies, unless another engine is chosen for that. */
  engineId: string | null;
  /** Null: the same engine. */
  applyEngineId: string | null;
  rules: TableRules;
  parameters: Record<string, ParameterValue>;
  name: string;
  start: boolean;
}

export const emptyWizard: WizardState = {
  sourceId: null,
  destinationId: null,
  engineId: null,
  applyEngineId: null,
  rules: { include: [{ schema: "public", table: "*" }], exclude: [] },
  parameters: {},
  name: "",
  start: true,
};

/** What the pages have learned from the API. */
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
      if (!state.destinationId) return "Choose the destination database.";
      if (state.destinationId === state.sourceId) return "Source and destination must be two databases.";
      if (facts.engines.length === 0) return "No engine is enrolled.";
      if (facts.engines.length > 1 && !state.engineId) return "Choose the engine that runs the stream.";
      return isPropagated(state) ? placementFault(state, facts.engines) : null;
    case "tables":
      if (completeRules(state.rules).include.length === 0) return "Add an include rule.";
      if (facts.replicable === null) return "Wait until the rules are evaluated.";
      return facts.replicable > 0 ? null : "The rules match no table that can be replicated.";
    case "preflight":
      if (facts.preflightReady === null) return "Wait until the checks are done.";
      return facts.preflightReady ? null : "Cure what failed, then run the checks again.";
    case "parameters":
      return anyFault(facts.definitions, { ...defaults(facts.definitions), ...state.parameters })
        ? "A value does not fit its range."
        : null;
    case "review":
      return state.name.trim() === "" ? "Give the stream a name." : null;
  }
}

export function isPropagated(state: WizardState): boolean {
  return state.applyEngineId !== null && state.applyEngineId !== state.engineId;
}

/** Why these two engines cannot work together, or null when they can. */
function placementFault(state: WizardState, engines: readonly Engine[]): string | null {
  const capture = engines.find(({ id }) => id === state.engineId);
  const apply = engines.find(({ id }) => id === state.applyEngineId);
  const nameless = [capture, apply].find((engine) => engine && engine.identity === null);
  if (nameless) return `${nameless.name} has no identity yet: it must be online, in this version.`;
  return apply && apply.propagation_address === null
    ? `It is not known where others reach ${apply.name}: set its address on the page Engines.`
    : null;
}

/** The first step that is not done: as far as the wizard may be opened. */
export function furthestStep(state: WizardState, facts: WizardFacts): number {
  const open = steps.findIndex((step) => stepFault(step, state, facts) !== null);
  return open === -1 ? steps.length - 1 : open;
}

/** What a change of an earlier answer makes obsolete goes with it. */
export function withSource(state: WizardState, sourceId: string): WizardState {
  if (sourceId === state.sourceId) return state;
  const destinationId = state.destinationId === sourceId ? null : state.destinationId;
  return { ...state, sourceId, destinationId, rules: emptyWizard.rules };
}

function placement(state: WizardState): Partial<StreamCreate> {
  if (!state.engineId) return {};
  return isPropagated(state)
    ? { capture_engine_id: state.engineId, apply_engine_id: state.applyEngineId }
    : { engine_id: state.engineId };
}

/** The request's body: only parameters that differ from their defaults are sent. */
export function toStreamCreate(state: WizardState, definitions: StreamParameter[]): StreamCreate {
  return {
    name: state.name.trim(),
    source_id: state.sourceId ?? "",
    destination_id: state.destinationId ?? "",
    ...placement(state),
    rules: completeRules(state.rules),
    parameters: changedValues(defaults(definitions), state.parameters),
    start: state.start,
  };
}
