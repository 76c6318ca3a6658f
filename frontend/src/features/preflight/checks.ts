import type { Check } from "@/api/types";

const rank: Record<Check["status"], number> = { failed: 0, warning: 1, ok: 2 };

/** Source before destination; in each, what failed before what warns before what passed. */
export function bySide(checks: Check[]): [Check["side"], Check[]][] {
  const sides: Check["side"][] = ["source", "destination"];
  return sides.flatMap((side): [Check["side"], Check[]][] => {
    const group = checks
      .filter((check) => check.side === side)
      .sort((a, b) => rank[a.status] - rank[b.status]);
    return group.length === 0 ? [] : [[side, group]];
  });
}

export function summary(checks: Check[]): string {
  const count = (status: Check["status"]) => checks.filter((check) => check.status === status).length;
  const [failed, warnings] = [count("failed"), count("warning")];
  const parts = [`${count("ok")} of ${checks.length} checks passed`];
  if (warnings > 0) parts.push(`${warnings} ${warnings === 1 ? "warning" : "warnings"}`);
  if (failed > 0) parts.push(`${failed} failed`);
  return `${parts.join(", ")}.`;
}
