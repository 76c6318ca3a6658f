import { Group, SegmentedControl, Stack, Text } from "@mantine/core";
import { IconActivity } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { problemInWords } from "@/api/problem-in-words";
import { samplesQuery } from "@/api/streams";
import type { Sample, Stream } from "@/api/types";
import { EngineReports } from "@/features/component-strip/engine-reports";
import { errorPlace } from "@/features/destinations/error-place";
import { CopyBoard } from "@/features/instantiation/copy-board";
import { StreamCharts } from "@/features/stream-charts/stream-charts";
import { asText, formatAgo, wholeSeconds } from "@/lib/format";
import { Empty } from "@/ui/faces";
import { Panel } from "@/ui/panel";
import { QueryFaces } from "@/ui/query-faces";
import { KeyFigures } from "./key-figures";
import { StreamPath } from "./stream-path";
import { StreamPositions } from "./stream-positions";
import { whySilent } from "./why-silent";

interface StreamNowProps {
  stream: Stream;
  mayAct: boolean;
  onErrorQueue: (destinationId: string) => void;
  minutes: number;
  onMinutes: (minutes: number) => void;
  /** Over how much the path is judged, and the title of the page. */
  judgedSeconds: number;
  onJudgedSeconds: (seconds: number) => void;
}

/** The components' last known states need not be those of now. */
function ofUnknownState(sample: Sample): Sample {
  return {
    ...sample,
    components: sample.components.map((component) => ({ ...component, state: "UNKNOWN" })),
  };
}

/** Errors of destinations that the top of the page shows. */
function toldOf(stream: Stream) {
  return stream.destinations.filter((own) => errorPlace(stream, own) !== null).map(({ error }) => error);
}

export function StreamNow(props: StreamNowProps) {
  const { stream, mayAct, onErrorQueue, minutes, onMinutes, judgedSeconds, onJudgedSeconds } = props;
  const samples = useQuery(samplesQuery(stream.id, minutes));
  return (
    <Stack gap="sm">
      <KeyFigures stream={stream} />
      {stream.reports.length > 0 && (
        <EngineReports reports={stream.reports} shown={[stream.error, ...toldOf(stream)]} />
      )}
      <CopyBoard destinations={stream.destinations} finished={false} />
      <QueryFaces query={samples} inWords={problemInWords} loadingLabel="Loading live samples">
        {(known) => {
          const last = known.at(-1);
          if (!last) {
            return (
              <Panel>
                <Empty icon={<IconActivity size={36} stroke={1.5} />} title="No live samples yet">
                  {whySilent(stream)}
                </Empty>
              </Panel>
            );
          }
          const heard = stream.status !== "UNKNOWN";
          return (
            <>
              <StreamPath
                sample={heard ? last : ofUnknownState(last)}
                stream={stream}
                mayAct={mayAct}
                onErrorQueue={onErrorQueue}
                seconds={judgedSeconds}
                onSeconds={onJudgedSeconds}
              />
              <Group justify="space-between">
                <Text size="xs" c="dimmed">
                  {!heard
                    ? `The figures are those of ${formatAgo(last.at)}: the engine does not answer now.`
                    : last.interval_seconds === null
                      ? "First sample: rates are known from the second one on."
                      : `Rates over the last ${asText(wholeSeconds(last.interval_seconds))}.`}
                </Text>
                <SegmentedControl
                  size="xs"
                  aria-label="Time shown in the charts"
                  value={String(minutes)}
                  onChange={(value) => onMinutes(Number(value))}
                  data={[
                    { value: "5", label: "5 min" },
                    { value: "15", label: "15 min" },
                    { value: "60", label: "60 min" },
                  ]}
                />
              </Group>
              <StreamCharts samples={known} minutes={minutes} destinations={stream.destinations} />
            </>
          );
        }}
      </QueryFaces>
      <CopyBoard destinations={stream.destinations} finished={true} />
      {stream.positions && <StreamPositions positions={stream.positions} mode={stream.mode} />}
    </Stack>
  );
}
