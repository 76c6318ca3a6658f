// The wizard's answers survive a reload: they lie in the browser until the stream is made or somebody starts afresh.
import type { Database } from "@/api/types";
import { emptyWizard, publicRules, steps, type WizardState } from "./wizard-state";

const KEY = "thalweg.stream-draft";

export interface Draft {
  state: WizardState;
  active: number;
}

/** Only what still holds: databases may have gone meanwhile. Null when there is no draft, or none that can be read. */
export function readDraft(databases: readonly Database[]): Draft | null {
  const known = new Set(databases.map(({ id }) => id));
  try {
    const draft = JSON.parse(localStorage.getItem(KEY) ?? "null") as Draft | null;
    const state = draft && { ...emptyWizard, ...draft.state };
    if (!state?.sourceId || !known.has(state.sourceId)) return null;
    const destinationIds = state.destinationIds.filter((id) => known.has(id));
    // The checks of the preflight were of another day: beyond it the wizard begins with them.
    const last = steps.indexOf(destinationIds.length > 0 ? "preflight" : "destination");
    const isUntouched = JSON.stringify(state.rules) === JSON.stringify(publicRules);
    const rules = isUntouched ? publicRules : state.rules;
    return { state: { ...state, destinationIds, rules }, active: Math.min(draft?.active ?? 0, last) };
  } catch {
    return null;
  }
}

export function keepDraft(draft: Draft): void {
  try {
    localStorage.setItem(KEY, JSON.stringify(draft));
  } catch {
    // A browser that keeps nothing: the wizard works without.
  }
}

export function dropDraft(): void {
  localStorage.removeItem(KEY);
}
