import { Group, Stack, Text } from "@mantine/core";
import type { JudgedChange, RuleOutcome } from "@/api/types";
import type { StateInWords } from "@/lib/states";
import { type Column, DataTable } from "@/ui/data-table";
import { ToneBadge } from "@/ui/tone";
import { scopeInWords } from "./rule-scopes";

type Row = JudgedChange & { place: number };

const verdicts: Record<string, StateInWords> = {
  PASSED: { label: "Passes", tone: "good", definition: "The destinations receive it unchanged." },
  DROPPED: { label: "Dropped", tone: "quiet", definition: "The destinations do not receive it." },
  "BECOMES INSERT": {
    label: "Becomes an insert",
    tone: "good",
    definition: "The row enters the subset: the destinations insert it.",
  },
  "BECOMES DELETE": {
    label: "Becomes a delete",
    tone: "good",
    definition: "The row leaves the subset: the destinations delete it.",
  },
  "STOPS THE STREAM": {
    label: "Stops the stream",
    tone: "bad",
    definition: "The rules cannot decide, so the stream would stop in front of the change.",
  },
};

const verdictInWords = ({ verdict }: JudgedChange): StateInWords =>
  verdicts[verdict] ?? { label: verdict.toLowerCase(), tone: "quiet", definition: "" };

/** "7 pass, 12 are dropped" */
function summary(changes: JudgedChange[]): string {
  const counts = new Map<string, number>();
  for (const change of changes) {
    const { label } = verdictInWords(change);
    counts.set(label, (counts.get(label) ?? 0) + 1);
  }
  return [...counts].map(([label, count]) => `${label}: ${count}`).join(", ");
}

/** Changes with what each rule made of them, and with their verdicts. `order`: the table's columns. */
export function JudgedChanges({ changes, order }: { changes: JudgedChange[]; order: string[] }) {
  const rows = changes.map((change, place) => ({ ...change, place }));
  return (
    <Stack gap={4}>
      <Text size="sm" role="status">
        {summary(changes)}
      </Text>
      <DataTable
        label="Verdicts"
        columns={[
          {
            key: "change",
            header: "Change",
            definition: "Rows of the table count as inserts. Long values are cut.",
            cell: (change) => <Change change={change} order={order} />,
          },
          ...(changes[0]?.rules ?? []).map((outcome, number) => ruleColumn(outcome, number)),
          { key: "verdict", header: "Verdict", cell: (change) => <Verdict change={change} /> },
        ]}
        rows={rows}
        rowKey={({ place }) => String(place)}
        maxHeight={360}
      />
    </Stack>
  );
}

function ruleColumn({ set, rule, scope }: RuleOutcome, number: number): Column<Row> {
  return {
    key: `${set} ${rule}`,
    header: scope === "table" ? rule : `${rule} (${scopeInWords[scope]})`,
    definition: set === "positive" ? "A positive rule." : "A negative rule.",
    cell: ({ rules }) => <Outcome outcome={rules[number]} />,
  };
}

function Outcome({ outcome }: { outcome: RuleOutcome | undefined }) {
  if (!outcome) return "–";
  const after = outcome.outcome.toLowerCase();
  if (outcome.before === null) return after;
  return `${outcome.before.toLowerCase()} before, ${after} after`;
}

function Change({
  change: { operation, old, new: after },
  order,
}: {
  change: JudgedChange;
  order: string[];
}) {
  return (
    <Stack gap={0}>
      <Text size="xs" c="dimmed">
        {operation}
      </Text>
      {old && <Values row={old} order={order} mark={after ? "old" : ""} />}
      {after && <Values row={after} order={order} mark={old ? "new" : ""} />}
    </Stack>
  );
}

function Values({ row, order, mark }: { row: Record<string, string | null>; order: string[]; mark: string }) {
  const names = [
    ...order.filter((name) => name in row),
    ...Object.keys(row).filter((name) => !order.includes(name)),
  ];
  const values = names.map((name) => `${name}=${row[name] ?? "NULL"}`).join(", ");
  return (
    <Text size="xs" ff="monospace" lineClamp={3} title={values} style={{ overflowWrap: "anywhere" }}>
      {mark && `${mark}: `}
      {values}
    </Text>
  );
}

function Verdict({ change }: { change: JudgedChange }) {
  return (
    <Stack gap={2}>
      <Group gap={0}>
        <ToneBadge state={verdictInWords(change)} compact />
      </Group>
      {change.error && (
        <Text size="xs">
          {change.error.message} ({change.error.code})
        </Text>
      )}
    </Stack>
  );
}
