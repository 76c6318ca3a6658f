import { Group, Stack, Text } from "@mantine/core";
import type { JudgedChange, RuleOutcome } from "@/api/types";
import { formatTime } from "@/lib/format";
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
            definition:
              "Rows of the table count as inserts. Long values are cut. In a captured change, “not sent” marks values that the source did not send, and “hidden” those of columns that the stream masks or drops.",
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
  const after = inWords(outcome.outcome, outcome);
  if (outcome.before === null) return after;
  return `${inWords(outcome.before, outcome)} before, ${after} after`;
}

const counted: Record<string, string> = { TRUE: "true", FALSE: "not true" };

/** An outcome that the rule's policy decides says so. */
function inWords(word: string, { counts_as }: RuleOutcome): string {
  const isUnclear = word === "UNDECIDABLE" || word === "FAILED";
  return isUnclear && counts_as
    ? `${word.toLowerCase()}, counted as ${counted[counts_as]}`
    : word.toLowerCase();
}

function Change({ change, order }: { change: JudgedChange; order: string[] }) {
  const { operation, old, new: after, origin } = change;
  const isCaptured = origin === "STREAM";
  const hasOld = old || (isCaptured && operation === "UPDATE");
  return (
    <Stack gap={0}>
      <Text size="xs" c="dimmed">
        {operation}
        {isCaptured && ", captured"}
        {change.tag !== null && `, tag ${change.tag}`}
        {change.commit_time !== null && `, committed ${formatTime(change.commit_time)}`}
      </Text>
      {hasOld && (
        <Values row={old} order={order} mark={after ? "old" : ""} {...without(change, change.old_not_sent)} />
      )}
      {after && (
        <Values
          row={after}
          order={order}
          mark={hasOld ? "new" : ""}
          {...without(change, change.new_not_sent)}
        />
      )}
    </Stack>
  );
}

const without = ({ hidden }: JudgedChange, notSent: string[]) => ({
  hidden,
  notSent: notSent.filter((name) => !hidden.includes(name)),
});

interface ValuesProps {
  /** Null: nothing of it was sent. */
  row: Record<string, string | null> | null;
  order: string[];
  mark: string;
  hidden: string[];
  notSent: string[];
}

function Values({ row, order, mark, hidden, notSent }: ValuesProps) {
  const names = row
    ? [...order.filter((name) => name in row), ...Object.keys(row).filter((name) => !order.includes(name))]
    : [];
  const values = row
    ? [
        ...names.map((name) => `${name}=${row[name] ?? "NULL"}`),
        ...hidden.map((name) => `${name} hidden`),
        ...notSent.map((name) => `${name} not sent`),
      ].join(", ")
    : "not sent";
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
