import { Group, Select, SimpleGrid, Stack, Text, VisuallyHidden } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { type HistoryRange, historyQuery, historyStatisticsQuery } from "@/api/history";
import { problemInWords } from "@/api/problem-in-words";
import type { Stream, StreamHistory } from "@/api/types";
import { asText, duration } from "@/lib/format";
import { Empty } from "@/ui/faces";
import { Panel } from "@/ui/panel";
import { QueryFaces } from "@/ui/query-faces";
import { TimeChart } from "@/ui/time-chart";
import { type Chart, type Charted, chartsOf, seriesOf, statisticsOf } from "./charts";
import { EventList } from "./event-list";
import { eventsBetween, type HistoryEvent, outageEvents } from "./events";
import { useEvents } from "./use-events";

/** As many as the control plane tells of one range. */
const OUTAGES_MAX = 200;

interface HistoryChartsProps {
  stream: Stream;
  range: HistoryRange;
  /** The range that was selected by dragging. */
  selected: { from: number; until: number } | undefined;
  onSelect: (from: number, until: number) => void;
}

/** A stream's history over a range of any length: all charts together, one cursor in all of them. */
export function HistoryCharts({ stream, ...shownOf }: HistoryChartsProps) {
  const destinations: Charted[] = stream.destinations.map(({ id, database }) => ({
    id,
    name: database.name,
  }));
  const [chosen, setChosen] = useState<string | null>(null);
  const shown = destinations.find(({ id }) => id === chosen)?.id ?? destinations[0]?.id;
  const names = useQuery(historyStatisticsQuery(stream.id));
  return (
    <QueryFaces query={names} inWords={problemInWords} loadingLabel="Loading the list of statistics">
      {(statistics) =>
        statistics.length === 0 ? (
          <Panel>
            <Empty title="No history yet">
              History begins with the stream's first samples and goes back as far as the control plane keeps
              it.
            </Empty>
          </Panel>
        ) : (
          <Stack gap={8}>
            {destinations.length > 1 && (
              <Group gap="xs">
                <Text size="sm">Components on the path to</Text>
                <Select
                  size="xs"
                  aria-label="Destination whose path is charted"
                  data={destinations.map(({ id, name }) => ({ value: id, label: name }))}
                  value={shown}
                  onChange={setChosen}
                  allowDeselect={false}
                />
              </Group>
            )}
            <Charts stream={stream} {...shownOf} charts={chartsOf(statistics, destinations, shown)} />
          </Stack>
        )
      }
    </QueryFaces>
  );
}

function Charts({ stream, range, charts, ...over }: HistoryChartsProps & { charts: Chart[] }) {
  const query = useQuery(historyQuery(stream.id, statisticsOf(charts), range));
  const { events: all, loading, missing } = useEvents(stream.id, range);
  const since = query.data && Date.parse(query.data.since);
  const until = query.data && Date.parse(query.data.until);
  const outages = query.data?.outages;
  const events = useMemo(
    () =>
      since === undefined || until === undefined
        ? []
        : eventsBetween([...all, ...outageEvents(outages ?? [])], since, until),
    [all, outages, since, until],
  );
  return (
    <QueryFaces query={query} inWords={problemInWords} rows={8} loadingLabel="Loading history">
      {(history) => (
        <Stack gap={8}>
          <VisuallyHidden component="h2">Charts</VisuallyHidden>
          <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="sm">
            {charts.map((chart) => (
              <OneChart key={chart.title} chart={chart} history={history} events={events} {...over} />
            ))}
          </SimpleGrid>
          <Group justify="space-between">
            <Text size="xs" c="dimmed">
              Drag over a chart to see what happened then. Dashed lines mark the events below, shaded spans
              mark outages.
            </Text>
            <Text size="xs" c="dimmed">
              Each point is the mean of {asText(duration(history.step_seconds))}, from the history of every{" "}
              {history.resolution}.
            </Text>
          </Group>
          <EventList
            events={events}
            loading={loading}
            missing={[
              ...missing,
              ...(history.outages.length >= OUTAGES_MAX
                ? [`Only the newest ${OUTAGES_MAX} outages of the range are shown.`]
                : []),
            ]}
          />
        </Stack>
      )}
    </QueryFaces>
  );
}

interface OneChartProps extends Pick<HistoryChartsProps, "selected" | "onSelect"> {
  chart: Chart;
  history: StreamHistory;
  events: HistoryEvent[];
}

function OneChart({ chart, history, events, selected, onSelect }: OneChartProps) {
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
      selected={selected}
      marks={events}
      onSelect={onSelect}
      syncKey="history"
      height={160}
    />
  );
}
