import { asProblem } from "@/api/problem";
import type { Check } from "@/api/types";

const rank: Record<Check["status"], number> = { failed: 0, consent: 1, warning: 2, ok: 3 };

export interface SideChecks {
  side: Check["side"];
  /** The database among several destinations. */
  databaseId: string | null;
  group: Check[];
}

/** Nothing failed, and what must be accepted is. */
export function isReady(checks: Check[], accepted: readonly string[]): boolean {
  return checks.every(
    ({ status, consent }) =>
      status !== "failed" && (status !== "consent" || (!!consent && accepted.includes(consent))),
  );
}

/** Those in the way of a request that was refused; none where another problem refused it. */
export function refusedChecks(error: unknown): Check[] {
  return error ? (asProblem(error).checks ?? []) : [];
}

/** Every check that may be accepted is. Failed checks are judged again with the next try. */
export function isAccepted(checks: Check[], accepted: readonly string[]): boolean {
  return checks.every(({ consent }) => consent === null || accepted.includes(consent));
}

/** Source before destinations; in each, what failed before what warns before what passed. */
export function bySide(checks: Check[]): SideChecks[] {
  const groups = new Map<string, SideChecks>();
  for (const check of checks) {
    const key = `${check.side} ${check.database_id}`;
    const known = groups.get(key) ?? { side: check.side, databaseId: check.database_id, group: [] };
    groups.set(key, { ...known, group: [...known.group, check] });
  }
  return [...groups.values()]
    .map((side) => ({ ...side, group: side.group.sort((a, b) => rank[a.status] - rank[b.status]) }))
    .sort((a, b) => Number(a.side === "destination") - Number(b.side === "destination"));
}

export function summary(checks: Check[]): string {
  const count = (status: Check["status"]) => checks.filter((check) => check.status === status).length;
  const [failed, consents, warnings] = [count("failed"), count("consent"), count("warning")];
  const passed = count("ok");
  const parts = passed > 0 ? [`${passed} of ${checks.length} checks passed`] : [];
  if (warnings > 0) parts.push(`${warnings} ${warnings === 1 ? "warning" : "warnings"}`);
  if (consents > 0) parts.push(`${consents} ${consents === 1 ? "needs" : "need"} your consent`);
  if (failed > 0) parts.push(`${failed} failed`);
  return `${parts.join(", ")}.`;
}
