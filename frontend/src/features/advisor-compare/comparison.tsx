import { Group, SegmentedControl, Stack, Text } from "@mantine/core";
import { IconArrowRight } from "@tabler/icons-react";
import { useMemo, useState } from "react";
import type { ComparedStatistic, Comparison } from "@/api/types";
import { limitInWords } from "@/lib/advisor";
import { changeInWords, isBetter, statisticQuantity } from "@/lib/statistics";
import { type Column, DataTable } from "@/ui/data-table";
import { Panel } from "@/ui/panel";
import { Quantity } from "@/ui/quantity";
import { type Shown, shownStatistics, subjectOf } from "./compared";

/** Two runs side by side: bottlenecks, then every statistic before, after and its change. */
export function ComparisonView({ comparison }: { comparison: Comparison }) {
  const [shown, setShown] = useState<Shown>("paths");
  const rows = useMemo(() => shownStatistics(comparison.statistics, shown), [comparison, shown]);
  return (
    <Stack gap="sm">
      <Panel title="Bottlenecks">
        <Stack gap={8}>
          {comparison.bottlenecks.map((bottleneck) => (
            <Group key={bottleneck.path_id} gap={10}>
              <Text size="sm" fw={600}>
                {bottleneck.path_name}
              </Text>
              <Text size="sm">
                {bottleneck.before === null ? "not in the run" : limitInWords(bottleneck.before)}
              </Text>
              <IconArrowRight size={15} aria-label="then" />
              <Text size="sm" fw={bottleneck.changed ? 600 : undefined}>
                {bottleneck.after === null ? "not in the run" : limitInWords(bottleneck.after)}
              </Text>
              {!bottleneck.changed && (
                <Text size="xs" c="dimmed">
                  unchanged
                </Text>
              )}
            </Group>
          ))}
          {comparison.bottlenecks.length === 0 && <Text size="sm">The two runs have no path in common.</Text>}
        </Stack>
      </Panel>
      <Panel
        flush
        title="Statistics"
        aside={
          <SegmentedControl
            size="xs"
            aria-label="Statistics to show"
            value={shown}
            onChange={(value) => setShown(value as Shown)}
            data={[
              { value: "paths", label: "Paths" },
              { value: "changed", label: "Largest changes" },
              { value: "all", label: "All" },
            ]}
          />
        }
      >
        <DataTable
          label="Statistics of both runs"
          columns={columns}
          rows={rows.map((row, index) => ({ ...row, key: String(index) }))}
          rowKey={(row) => row.key}
          empty="Nothing to show: the two runs have no such statistic in common."
          maxHeight={620}
        />
      </Panel>
    </Stack>
  );
}

const columns: Column<ComparedStatistic & { key: string }>[] = [
  {
    key: "subject",
    header: "Subject",
    sortBy: (row) => subjectOf(row),
    cell: (row) => subjectOf(row),
  },
  {
    key: "name",
    header: "Statistic",
    sortBy: (row) => row.statistic_name,
    cell: (row) => row.statistic_name,
  },
  {
    key: "before",
    header: "Before",
    align: "right",
    sortBy: (row) => row.before,
    cell: (row) => <Quantity quantity={statisticQuantity(row.before, row.statistic_unit)} />,
  },
  {
    key: "after",
    header: "After",
    align: "right",
    sortBy: (row) => row.after,
    cell: (row) => <Quantity quantity={statisticQuantity(row.after, row.statistic_unit)} />,
  },
  {
    key: "change",
    header: "Change",
    align: "right",
    sortBy: (row) => row.change,
    cell: (row) => <Change row={row} />,
  },
  {
    key: "percent",
    header: "Change in %",
    align: "right",
    sortBy: (row) => row.change_percent,
    cell: (row) => (row.change_percent === null ? "–" : changeInWords(row.change_percent, "PERCENT")),
  },
];

function Change({ row }: { row: ComparedStatistic }) {
  const better = isBetter(row.statistic_name, row.change, row.change_percent);
  const tone = better === null ? undefined : better ? "var(--tone-good)" : "var(--tone-bad)";
  return (
    <span style={{ color: tone, whiteSpace: "nowrap" }}>
      {changeInWords(row.change, row.statistic_unit)}
      {better !== null && (better ? ", better" : ", worse")}
    </span>
  );
}
