import type { ComparedStatistic } from "@/api/types";
import { stageInWords } from "@/lib/advisor";

export type Shown = "paths" | "changed" | "all";

/** Below it a change is noise. */
const NOTABLE_PERCENT = 10;
const NOTABLE_SHARE = 5;

/** "orders → warehouse: Appliers, applier 3", or the path's name. */
export function subjectOf(row: ComparedStatistic): string {
  if (row.component_type === null) return row.path_name;
  const stage = stageInWords(row.component_type, row.sub_component_type, row.component_id ?? "");
  return `${row.path_name}: ${row.thread === null ? stage : `${stage}, applier ${row.thread}`}`;
}

function isNotable(row: ComparedStatistic): boolean {
  if (row.change === null) return false;
  if (row.statistic_unit === "PERCENT") return Math.abs(row.change) >= NOTABLE_SHARE;
  return row.change_percent === null ? row.change !== 0 : Math.abs(row.change_percent) >= NOTABLE_PERCENT;
}

export function shownStatistics(rows: ComparedStatistic[], shown: Shown): ComparedStatistic[] {
  if (shown === "all") return rows;
  if (shown === "paths") return rows.filter((row) => row.component_id === null);
  const size = (row: ComparedStatistic) => Math.abs(row.change_percent ?? row.change ?? 0);
  return rows.filter(isNotable).sort((a, b) => size(b) - size(a));
}
