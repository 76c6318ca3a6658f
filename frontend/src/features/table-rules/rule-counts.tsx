import { Stack, Text } from "@mantine/core";
import type { RuleCounts, RuleCountsOfTable } from "@/api/types";
import { formatAgo, formatCount, formatTime } from "@/lib/format";
import { type Column, DataTable } from "@/ui/data-table";
import { scopeInWords } from "./rule-scopes";

const name = ({ schema, table }: RuleCountsOfTable) => `${schema}.${table}`;

function countColumn(
  key: "passed" | "dropped" | "became_inserts" | "became_deletes" | "by_policy",
  header: string,
  definition: string,
): Column<RuleCountsOfTable> {
  return {
    key,
    header,
    definition,
    align: "right",
    sortBy: (table) => table[key],
    cell: (table) => formatCount(table[key]),
  };
}

const columns: Column<RuleCountsOfTable>[] = [
  { key: "table", header: "Table", cell: name, sortBy: name },
  {
    key: "from",
    header: "Rules from",
    definition: "The scopes of its rules: the table, its schema, or all tables.",
    cell: ({ scopes }) => scopes.map((scope) => scopeInWords[scope]).join(", "),
  },
  countColumn("passed", "Passed", "Changes that the rules let pass unchanged."),
  countColumn("dropped", "Dropped", "Changes that the rules dropped."),
  countColumn(
    "became_inserts",
    "Became inserts",
    "Updates that brought a row into the subset: the destinations insert it.",
  ),
  countColumn(
    "became_deletes",
    "Became deletes",
    "Updates that took a row out of the subset: the destinations delete it.",
  ),
  countColumn(
    "by_policy",
    "By policy",
    "Of all these, the changes for which the condition of a rule could not be evaluated and counted as true or as not true, as the rule says. The engine's log names rule and reason.",
  ),
];

const inWords: Record<string, string> = { INSERT: "inserts", UPDATE: "updates" };

/** Where the rules are evaluated first; an older engine does not tell. */
function evaluated({ at_source, at_engine_because }: RuleCountsOfTable) {
  const places = [];
  if (at_source.length > 0) {
    places.push(
      `At the source: ${at_source.map((operation) => inWords[operation] ?? operation).join(" and ")}`,
    );
  }
  if (at_engine_because) {
    const engine = places.length > 0 ? "the rest at the engine" : "At the engine";
    places.push(`${engine}, because ${at_engine_because}`);
  }
  return places.join("; ");
}

const evaluatedColumn: Column<RuleCountsOfTable> = {
  key: "evaluated",
  header: "Evaluated",
  definition:
    "Where the rules are evaluated for inserts and updates. Changes that the source drops are not sent, and not counted. The engine evaluates the rules for deletes.",
  cell: evaluated,
};

interface RuleCountsProps {
  /** Null: the engine does not tell now. */
  counts: RuleCounts | null;
  /** The destination whose own rules they are; left out: they are the stream's. */
  destination?: string;
}

/** Counts of what the row rules have decided. */
export function RuleCountsTable({ counts, destination }: RuleCountsProps) {
  const isRead = destination ? `are read for ${destination}` : "are captured";
  const began = destination ? `changes began to be read for ${destination}` : "the capture started";
  if (!counts) {
    return (
      <Text size="sm" c="dimmed">
        The rules count passed and dropped changes while changes {isRead}.
      </Text>
    );
  }
  const { counted_since, tables } = counts;
  return (
    <Stack gap={4}>
      <DataTable
        label={destination ? `Changes judged by the rules of ${destination}` : "Changes judged by rules"}
        columns={destination ? columns : [...columns, evaluatedColumn]}
        rows={tables}
        rowKey={name}
        initialSort={{ key: "table", descending: false }}
        maxHeight={320}
      />
      <Text size="xs" c="dimmed">
        Counted since {began}, {formatAgo(counted_since)} ({formatTime(counted_since)}). Changes that are read
        again count again. Large transactions are judged before they commit, so changes that the source rolls
        back count, too.
        {tables.some(({ at_source }) => at_source.length > 0) &&
          " Changes that the source drops are not sent, and not counted."}
      </Text>
    </Stack>
  );
}
