import { Group, Select, SimpleGrid, Stack, Text, VisuallyHidden } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { type HistoryRange, historyQuery, historyStatisticsQuery } from "@/api/history";
import { problemInWords } from "@/api/problem-in-words";
import type { StreamHistory } from "@/api/types";
import { asText, duration } from "@/lib/format";
import { Empty } from "@/ui/faces";
import { Panel } from "@/ui/panel";
import { QueryFaces } from "@/ui/query-faces";
import { TimeChart } from "@/ui/time-chart";
import { type Branch, type Chart, chartsOf, seriesOf, statisticsOf } from "./charts";

interface HistoryChartsProps {
  streamId: string;
  /** The stream's destinations. */
  branches: Branch[];
  range: HistoryRange;
  onSelect: (from: number, until: number) => void;
}

/** What the stream did over a range of any length: all charts together, one cursor in all of them. */
export function HistoryCharts({ streamId, branches, range, onSelect }: HistoryChartsProps) {
  const [chosen, setChosen] = useState<string | null>(null);
  const shown = branches.find(({ id }) => id === chosen)?.id ?? branches[0]?.id;
  const names = useQuery(historyStatisticsQuery(streamId));
  return (
    <QueryFaces query={names} inWords={problemInWords} loadingLabel="Loading what can be charted">
      {(statistics) =>
        statistics.length === 0 ? (
          <Panel>
            <Empty title="No history yet">
              It begins with the stream's first samples, and reaches back as far as the control plane keeps
              it.
            </Empty>
          </Panel>
        ) : (
          <Stack gap={8}>
            {branches.length > 1 && (
              <Group gap="xs">
                <Text size="sm">Components on the path to</Text>
                <Select
                  size="xs"
                  aria-label="Destination whose path is charted"
                  data={branches.map(({ id, name }) => ({ value: id, label: name }))}
                  value={shown}
                  onChange={setChosen}
                  allowDeselect={false}
                />
              </Group>
            )}
            <Charts
              streamId={streamId}
              range={range}
              onSelect={onSelect}
              charts={chartsOf(statistics, branches, shown)}
            />
          </Stack>
        )
      }
    </QueryFaces>
  );
}

function Charts({
  streamId,
  range,
  onSelect,
  charts,
}: Omit<HistoryChartsProps, "branches"> & { charts: Chart[] }) {
  const query = useQuery(historyQuery(streamId, statisticsOf(charts), range));
  return (
    <QueryFaces query={query} inWords={problemInWords} rows={8} loadingLabel="Loading history">
      {(history) => (
        <Stack gap={8}>
          <VisuallyHidden component="h2">Charts</VisuallyHidden>
          <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="sm">
            {charts.map((chart) => (
              <OneChart key={chart.title} chart={chart} history={history} onSelect={onSelect} />
            ))}
          </SimpleGrid>
          <Group justify="space-between">
            <Text size="xs" c="dimmed">
              Drag over a chart to ask what happened then.
            </Text>
            <Text size="xs" c="dimmed">
              Each point is the mean of {asText(duration(history.step_seconds))}, from the history of every{" "}
              {history.resolution}.
            </Text>
          </Group>
        </Stack>
      )}
    </QueryFaces>
  );
}

interface OneChartProps {
  chart: Chart;
  history: StreamHistory;
  onSelect: (from: number, until: number) => void;
}

function OneChart({ chart, history, onSelect }: OneChartProps) {
  const times = useMemo(() => history.times.map((time) => time * 1000), [history]);
  const wanted = chart.lines.map(({ statistics }) => statistics.join(" ")).join(", ");
  // biome-ignore lint/correctness/useExhaustiveDependencies: a chart of one title and lines differs only with the history
  const series = useMemo(() => seriesOf(chart, history), [chart.title, wanted, history]);
  return (
    <TimeChart
      title={chart.title}
      times={times}
      series={series}
      format={chart.format}
      binary={chart.binary}
      span={{ from: Date.parse(history.since), until: Date.parse(history.until) }}
      onSelect={onSelect}
      syncKey="history"
      height={160}
    />
  );
}
