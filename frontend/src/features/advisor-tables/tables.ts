// The six tables of a run, as columns of text: names as in Streams' DBA_STREAMS_TP_*.
import type { AdvisorAnalysis } from "@/api/types";
import { exact } from "@/lib/format";

export interface AdvisorTable {
  name: string;
  meaning: string;
  columns: { key: string; right?: boolean }[];
  rows: Record<string, string>[];
  /** Why it has no rows, where it has none. */
  empty: string;
}

const NO_PATH =
  "There was no path to analyse: no stream, or none that goes through the chosen component. Create one, or choose another.";
const NO_STATISTICS =
  "Rates need two samples of a stream that runs: start it, and take a snapshot some seconds later.";

type Row = Record<string, unknown>;

function text(value: unknown): string {
  if (typeof value === "boolean") return value ? "YES" : "NO";
  if (Array.isArray(value)) return value.join(", ");
  return exact(value);
}

function table(
  name: string,
  meaning: string,
  rows: Row[],
  keys: string[],
  right: string[] = [],
): AdvisorTable {
  return {
    name,
    meaning,
    empty: name.endsWith("_STAT") ? NO_STATISTICS : NO_PATH,
    columns: keys.map((key) => ({ key, right: right.includes(key) })),
    rows: rows.map((row) => Object.fromEntries(keys.map((key) => [key, text(row[key])]))),
  };
}

export function advisorTables(analysis: AdvisorAnalysis): AdvisorTable[] {
  return [
    table("DATABASE", "Databases that the paths touch.", analysis.databases as unknown as Row[], [
      "global_name",
      "role",
      "address",
      "version",
      "last_queried",
    ]),
    table("COMPONENT", "Components of the paths.", analysis.components as unknown as Row[], [
      "component_id",
      "component_name",
      "component_db",
      "component_type",
      "engine",
      "state",
    ]),
    table(
      "COMPONENT_LINK",
      "From each component to the next.",
      analysis.component_links as unknown as Row[],
      [
        "path_id",
        "position",
        "source_component_id",
        "destination_component_id",
        "back_pressured",
        "messages_per_second",
      ],
      ["position", "messages_per_second"],
    ),
    table(
      "COMPONENT_STAT",
      "Statistics of components, sub-components and threads.",
      analysis.component_statistics as unknown as Row[],
      [
        "component_id",
        "sub_component_type",
        "thread",
        "statistic_name",
        "statistic_value",
        "statistic_unit",
        "statistic_time",
      ],
      ["thread", "statistic_value"],
    ),
    table(
      "PATH_STAT",
      "Statistics of whole paths.",
      analysis.path_statistics as unknown as Row[],
      ["path_id", "statistic_name", "statistic_value", "statistic_unit", "statistic_time"],
      ["statistic_value"],
    ),
    table(
      "PATH_BOTTLENECK",
      "One row for each path.",
      analysis.path_bottlenecks as unknown as Row[],
      [
        "path_id",
        "bottleneck_identified",
        "component_id",
        "sub_component_type",
        "top_thread",
        "action_name",
        "top_event",
        "top_event_percent",
        "idle_percent",
        "flow_control_percent",
        "advisor_run_reason",
      ],
      ["top_thread", "top_event_percent", "idle_percent", "flow_control_percent"],
    ),
  ];
}

const typed = (value: string) => value.toLowerCase().replaceAll("\u202f", "");

/** Rows that hold the text in any column. Numbers are typed without their groups. */
export function matching(rows: Record<string, string>[], filter: string): Record<string, string>[] {
  const wanted = typed(filter.trim());
  if (!wanted) return rows;
  return rows.filter((row) => Object.values(row).some((value) => typed(value).includes(wanted)));
}
