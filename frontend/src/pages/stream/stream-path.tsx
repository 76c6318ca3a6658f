import { Group, SegmentedControl, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { analysisQuery } from "@/api/advisor";
import { problemInWords } from "@/api/problem-in-words";
import type { Sample, Stream } from "@/api/types";
import { Findings } from "@/features/advisor-findings/findings";
import { TakeSnapshot } from "@/features/advisor-runs/take-snapshot";
import { ComponentStrip } from "@/features/component-strip/component-strip";
import { ComponentTable } from "@/features/component-strip/component-table";
import { DestinationHead } from "@/features/destinations/destination-head";
import { findingRepeatsError, repeatsError } from "@/features/destinations/error-place";
import { DestinationParameters } from "@/features/parameters/destination-parameters";
import { lockedShare } from "@/features/path-view/path-model";
import { VerdictLine } from "@/features/path-view/path-verdict";
import { StageDetail } from "@/features/path-view/stage-detail";
import { AnchorLink } from "@/ui/anchor-link";
import { Panel } from "@/ui/panel";
import { ProblemAlert } from "@/ui/problem-alert";
import { AddDestination } from "./add-destination";
import { type LivePath, livePaths, stageOfCard } from "./live-paths";

interface StreamPathProps {
  stream: Stream;
  sample: Sample;
  mayAct: boolean;
  onErrorQueue: (destinationId: string) => void;
  /** The window of the analysis. */
  seconds: number;
  onSeconds: (seconds: number) => void;
}

/** The components as the changes flow, live: what each does, what limits the path, and why. */
export function StreamPath(props: StreamPathProps) {
  const { stream, sample, mayAct, onErrorQueue, seconds, onSeconds } = props;
  const [view, setView] = useState("strip");
  const [setting, setSetting] = useState<string | null>(null);
  const live = useLivePaths(stream, seconds);
  const set = stream.destinations.find(({ id }) => id === setting);
  return (
    <Stack component="section" aria-labelledby="path-title" gap={8}>
      <Group justify="space-between">
        <Text component="h2" id="path-title" size="md" fw={600}>
          Path
        </Text>
        <Group gap="sm">
          <AnchorLink to="/advisor" search={{ stream: stream.id }} size="sm">
            Runs of this stream
          </AnchorLink>
          <TakeSnapshotOf stream={stream} mayAct={mayAct} />
          <AddDestination stream={stream} mayAct={mayAct} />
          <SegmentedControl
            size="xs"
            aria-label="View of the components"
            value={view}
            onChange={setView}
            data={[
              { value: "strip", label: "Strip" },
              { value: "table", label: "Table" },
            ]}
          />
        </Group>
      </Group>
      {live.problem && <ProblemAlert tone="warning" problem={live.problem} />}
      <Window seconds={seconds} onSeconds={onSeconds} />
      {set && (
        <DestinationParameters
          key={set.id}
          stream={stream}
          destination={set}
          mayAct={mayAct}
          opened
          onClose={() => setSetting(null)}
        />
      )}
      {view === "strip" ? (
        <ComponentStrip
          sample={sample}
          stream={stream}
          marksOf={live.marksOf}
          below={live.detail}
          destinationHead={(destination) => (
            <>
              <DestinationHead
                stream={stream}
                destination={destination}
                mayAct={mayAct}
                onErrorQueue={() => onErrorQueue(destination.id)}
                onParameters={() => setSetting(destination.id)}
              />
              {live.verdict(destination.id)}
            </>
          )}
        />
      ) : (
        <Panel flush>
          <ComponentTable
            sample={sample}
            destinations={Object.fromEntries(
              stream.destinations.map(({ id, database }) => [id, database.name]),
            )}
          />
        </Panel>
      )}
      {live.findings.length > 0 && (
        <Panel title="Findings">
          <Findings findings={live.findings} paths={live.paths} />
        </Panel>
      )}
    </Stack>
  );
}

/** The live analysis as the strip shows it. One card at a time is open to its threads. */
function useLivePaths(stream: Stream, seconds: number) {
  const query = useQuery(analysisQuery({ stream_id: stream.id, window_seconds: seconds }));
  const [opened, setOpened] = useState<{ destinationId: string | null; title: string } | null>(null);
  const paths = query.data ? livePaths(query.data) : [];
  const isOpen = (destinationId: string | null, title: string) =>
    opened?.title === title && opened.destinationId === destinationId;
  const marksOf = (destinationId: string | null) => (title: string) => {
    const stage = stageOfCard(paths, destinationId, title);
    if (!stage) return null;
    const open = isOpen(destinationId, title);
    return {
      bottleneck: stage.bottleneck,
      heldBackBy: stage.heldBackBy,
      locked: lockedShare(stage.shares),
      opened: open,
      onOpen: () => setOpened(open ? null : { destinationId, title }),
    };
  };
  const detail = (destinationId: string | null) => {
    const stage = opened?.destinationId === destinationId && stageOfCard(paths, destinationId, opened.title);
    if (!stage || !query.data) return null;
    const { thresholds } = query.data.analysis;
    return <StageDetail stage={stage} thresholds={thresholds} onClose={() => setOpened(null)} />;
  };
  const isShownAbove = (path: LivePath) => {
    const destination = stream.destinations.find(({ id }) => id === path.destinationId);
    const verdict = path.model.bottleneck?.verdict;
    return destination !== undefined && verdict !== undefined && repeatsError(verdict, stream, destination);
  };
  const verdict = (destinationId: string) => {
    const path = paths.find((analysed) => analysed.destinationId === destinationId);
    return path && !isShownAbove(path) && <Verdict path={path} />;
  };
  const shownAbove = paths.filter(isShownAbove).map(({ pathId }) => pathId);
  const problem = query.isError
    ? problemInWords(query.error)
    : query.data?.live === false
      ? {
          title: "Live samples are missing",
          message: "Redis cannot be reached: the path is shown as far as it is known.",
          cure: "Check that Redis runs (make status).",
        }
      : null;
  return {
    marksOf,
    detail,
    verdict,
    problem,
    findings: (query.data?.findings_ranked ?? []).filter(
      (finding) => !shownAbove.includes(finding.path_id) || !findingRepeatsError(finding),
    ),
    paths: query.data?.paths ?? [],
  };
}

function Verdict({ path: { model, finding } }: { path: LivePath }) {
  return model.bottleneck && <VerdictLine bottleneck={model.bottleneck} finding={finding} />;
}

function Window({ seconds, onSeconds }: { seconds: number; onSeconds: (seconds: number) => void }) {
  return (
    <Group gap="xs" justify="flex-end">
      <Text size="xs" c="dimmed">
        Judged over the last
      </Text>
      <SegmentedControl
        size="xs"
        aria-label="Seconds that the path is analysed over"
        value={String(seconds)}
        onChange={(value) => onSeconds(Number(value))}
        data={[
          { value: "3", label: "3 s" },
          { value: "10", label: "10 s" },
          { value: "60", label: "1 min" },
          { value: "600", label: "10 min" },
        ]}
      />
    </Group>
  );
}

function TakeSnapshotOf({ stream, mayAct }: Pick<StreamPathProps, "stream" | "mayAct">) {
  const navigate = useNavigate();
  return (
    <TakeSnapshot
      mayAct={mayAct}
      streams={[stream]}
      streamId={stream.id}
      onTaken={(run) => navigate({ to: "/advisor/runs/$runId", params: { runId: String(run.id) } })}
    />
  );
}
