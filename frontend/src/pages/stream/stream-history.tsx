import { Button, CloseButton, Group, Stack } from "@mantine/core";
import { IconCamera, IconZoomIn } from "@tabler/icons-react";
import { useNavigate } from "@tanstack/react-router";
import { useTakeRun } from "@/api/advisor";
import type { HistoryRange } from "@/api/history";
import { problemInWords } from "@/api/problem-in-words";
import type { Stream } from "@/api/types";
import { HistoryCharts } from "@/features/history-charts/history-charts";
import { RangeBar } from "@/features/history-charts/range-bar";
import { RANGE_DEFAULT } from "@/features/history-charts/ranges";
import { formatTime } from "@/lib/format";
import { ProblemAlert } from "@/ui/problem-alert";
import { StreamAnalysis } from "./stream-analysis";
import classes from "./stream-history.module.css";

/** Of the address: how far the charts reach, and what was asked about. Times in milliseconds since the epoch. */
export interface HistorySearch {
  seconds?: number;
  from?: number;
  until?: number;
  begin?: number;
  end?: number;
}

interface StreamHistoryProps {
  stream: Stream;
  search: HistorySearch;
  onSearch: (change: HistorySearch) => void;
  mayAct: boolean;
}

/** Charts from one minute to 90 days; a range that is dragged over is analysed as the present is. */
export function StreamHistory({ stream, search, onSearch, mayAct }: StreamHistoryProps) {
  const { from, until, begin, end } = search;
  const range: HistoryRange = from && until ? { from, until } : { seconds: search.seconds ?? RANGE_DEFAULT };
  const selected = begin && end ? { from: begin, until: end } : undefined;
  const ask = (first: number, last: number) =>
    onSearch({ begin: Math.round(first), end: Math.round(Math.max(last, first + 2000)) });
  return (
    <Stack gap="sm">
      <RangeBar
        range={range}
        onSeconds={(seconds) => onSearch({ seconds, from: undefined, until: undefined })}
        onAnalyse={ask}
      />
      <div className={classes.beside} data-asked={selected ? true : undefined}>
        <HistoryCharts stream={stream} range={range} selected={selected} onSelect={ask} />
        {selected && (
          <WhatHappened
            key={`${selected.from} ${selected.until}`}
            stream={stream}
            begin={selected.from}
            end={selected.until}
            mayAct={mayAct}
            onZoom={() => onSearch(selected)}
            onClose={() => onSearch({ begin: undefined, end: undefined })}
          />
        )}
      </div>
    </Stack>
  );
}

interface WhatHappenedProps {
  stream: Stream;
  begin: number;
  end: number;
  mayAct: boolean;
  onZoom: () => void;
  onClose: () => void;
}

function WhatHappened({ stream, begin, end, mayAct, onZoom, onClose }: WhatHappenedProps) {
  const take = useTakeRun();
  const navigate = useNavigate();
  const times = { begin_at: new Date(begin).toISOString(), end_at: new Date(end).toISOString() };
  const keep = () =>
    take.mutate(
      { stream_id: stream.id, ...times, window_seconds: 30, facts: false },
      { onSuccess: (run) => navigate({ to: "/advisor/runs/$runId", params: { runId: String(run.id) } }) },
    );
  return (
    <Stack gap="sm">
      {take.isError && <ProblemAlert problem={problemInWords(take.error)} />}
      <StreamAnalysis
        title={`What happened: ${formatTime(times.begin_at)} to ${formatTime(times.end_at).slice(11)}`}
        scope={{ stream_id: stream.id, ...times }}
        aside={
          <Group gap="xs">
            <Button variant="default" leftSection={<IconZoomIn size={14} aria-hidden />} onClick={onZoom}>
              Zoom in
            </Button>
            <Button
              variant="default"
              leftSection={<IconCamera size={14} aria-hidden />}
              disabled={!mayAct}
              loading={take.isPending}
              onClick={keep}
            >
              Keep as a run
            </Button>
            <CloseButton aria-label="Close what happened" onClick={onClose} />
          </Group>
        }
      />
    </Stack>
  );
}
