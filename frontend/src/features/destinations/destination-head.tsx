import { Anchor, Box, Button, Group, Stack, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import {
  IconAdjustments,
  IconPlayerPause,
  IconPlayerPlay,
  IconRefresh,
  IconUnlink,
} from "@tabler/icons-react";
import { useState } from "react";
import { problemInWords } from "@/api/problem-in-words";
import { type StreamAction, useDestinationAction, useDropDestination } from "@/api/streams";
import type { Stream, StreamDestination } from "@/api/types";
import type { RestCallSpec } from "@/lib/curl";
import { asText, bytes, compactCount, duration, rate } from "@/lib/format";
import { isStanding } from "@/lib/lag";
import { withFullStop } from "@/lib/sentences";
import { destinationInWords, stateInWords } from "@/lib/states";
import { oldestParked } from "@/lib/sums";
import { ConfirmByName } from "@/ui/confirm-by-name";
import { ConfirmStop } from "@/ui/confirm-stop";
import { LagFigures } from "@/ui/lag-figures";
import { LatencyMetric } from "@/ui/latency-metric";
import { Meter } from "@/ui/meter";
import { ProblemAlert } from "@/ui/problem-alert";
import { Metric, MetricLabel } from "@/ui/quantity";
import { RestCallButton } from "@/ui/rest-call";
import { ToneBadge } from "@/ui/tone";
import { ERRORS_ID, errorPlace } from "./error-place";

const buttons = [
  { action: "start", label: "Resume", icon: IconPlayerPlay },
  { action: "stop", label: "Pause", icon: IconPlayerPause },
  { action: "retry", label: "Retry", icon: IconRefresh },
] as const;

interface DestinationHeadProps {
  stream: Stream;
  destination: StreamDestination;
  mayAct: boolean;
  onErrorQueue: () => void;
  onParameters: () => void;
}

/** One destination: how it is doing, how far behind it is, and what may be done with it alone. */
export function DestinationHead(props: DestinationHeadProps) {
  const { destination, onErrorQueue } = props;
  const { database, engine, error, latency, lag } = destination;
  const place = errorPlace(props.stream, destination);
  return (
    <Stack gap={8}>
      <Group justify="space-between" align="flex-start" gap={8}>
        <Group gap={8}>
          <Text size="sm" fw={600} component="h3" title={database.address}>
            {database.name}
          </Text>
          <ToneBadge state={destinationInWords(destination, props.stream.destinations)} compact wrap />
          <Text size="xs" c="dimmed">
            {destination.mode === "propagation" ? `received and applied by ${engine.name}` : engine.name}
          </Text>
        </Group>
        <DestinationActions {...props} />
      </Group>
      {error && place !== "table" && (
        <Text size="sm">
          {withFullStop(error.title)} See <Anchor href={`#${ERRORS_ID}`}>the fix</Anchor> at the top of the
          page.
        </Text>
      )}
      <Group gap="6px 28px" align="flex-start">
        <Metric metric="lcrRate" quantity={rate(destination.lcrs_per_second, "LCR")} />
        <LatencyMetric latency={latency} of="p99_ms" />
        <LagFigures
          lag={fills(destination) ? lag : { ...lag, seconds_to_full: null }}
          parked={destination.error_queue_transactions}
          standing={isStanding(destination)}
        />
        <Backlog destination={destination} />
        <Group gap={6} align="flex-end">
          <Metric
            metric="errors"
            quantity={compactCount(destination.error_queue_transactions, "txn")}
            note={oldestParked([destination])}
          />
          <Button size="compact-xs" variant="subtle" onClick={onErrorQueue}>
            Error queue
          </Button>
        </Group>
      </Group>
    </Stack>
  );
}

/** An empty or a full backlog has no time until it is full. */
function fills({ backlog, lag }: StreamDestination): boolean {
  return (
    lag.reached_limit === "staging_limit_mb" ||
    backlog === null ||
    (backlog.bytes > 0 && backlog.state !== "FULL")
  );
}

/** Disk space that the engine uses for this destination, of its limit. */
function Backlog({ destination: { backlog, database } }: { destination: StreamDestination }) {
  if (!backlog) return null;
  const text = `${asText(bytes(backlog.bytes))} of ${asText(bytes(backlog.limit_bytes))}`;
  const share = backlog.limit_bytes > 0 ? backlog.bytes / backlog.limit_bytes : null;
  const tone = backlog.state === "FULL" ? "bad" : share !== null && share > 0.8 ? "warning" : "busy";
  return (
    <>
      <Box miw={170}>
        <Group gap={6} wrap="nowrap">
          <MetricLabel metric="backlogOnDisk" />
          <Text size="xs" className="numeric" style={{ whiteSpace: "nowrap" }}>
            {text}
          </Text>
          <ToneBadge state={stateInWords(backlog.state)} compact />
        </Group>
        <Meter label={`Backlog of ${database.name} on disk`} share={share} text={text} tone={tone} />
      </Box>
      {backlog.age_seconds > 0 && <Metric metric="diskAge" quantity={duration(backlog.age_seconds)} />}
    </>
  );
}

function DestinationActions({ stream, destination, mayAct, onParameters }: DestinationHeadProps) {
  const name = destination.database.name;
  const path = `/api/v1/streams/${stream.id}/destinations/${destination.id}`;
  const act = useDestinationAction(stream.id, destination.id);
  const drop = useDropDestination(stream.id, destination.id);
  const [dropping, setDropping] = useState(false);
  const [pausing, setPausing] = useState(false);
  const dropCall = (force: boolean): RestCallSpec => ({
    method: "DELETE",
    path: `${path}${force ? "?force=true" : ""}`,
  });
  const run = (action: StreamAction) =>
    act.mutate(action, {
      onError: (error) => {
        const { title, message, cure } = problemInWords(error);
        const explanation = [message, cure].filter(Boolean).join(" ");
        notifications.show({ title, message: explanation, color: "red", autoClose: false });
      },
    });
  const isStopped = stream.desired_status !== "ENABLED";
  const offered = buttons.filter(({ action }) => destination.actions.includes(action));
  const lost = destination.backlog
    ? `Its backlog (${asText(bytes(destination.backlog.bytes))} on disk) is discarded for good`
    : "None of its changes are on the engine's disk. Changes not yet applied are lost";
  return (
    <Group gap={6}>
      <RestCallButton
        label="REST calls"
        calls={[
          ...offered.map(
            ({ action }): RestCallSpec => ({
              method: "POST",
              path: `${path}:${action}`,
            }),
          ),
          dropCall(false),
        ]}
      />
      {offered.map(({ action, label, icon: Icon }) => (
        <Button
          key={action}
          variant="default"
          leftSection={<Icon size={14} aria-hidden />}
          aria-label={`${label} ${name}`}
          disabled={!mayAct || (action === "stop" && isStopped)}
          title={
            action === "stop" && isStopped
              ? "The stream is stopped, and its destinations with it."
              : undefined
          }
          loading={act.isPending && act.variables === action}
          onClick={() => (action === "stop" ? setPausing(true) : run(action))}
        >
          {label}
        </Button>
      ))}
      <Button
        variant="default"
        leftSection={<IconAdjustments size={14} aria-hidden />}
        aria-label={`Parameters of ${name}`}
        onClick={onParameters}
      >
        Parameters
      </Button>
      <Button
        variant="default"
        leftSection={<IconUnlink size={14} aria-hidden />}
        aria-label={`Drop ${name}`}
        disabled={!mayAct || !destination.actions.includes("drop")}
        onClick={() => setDropping(true)}
      >
        Drop
      </Button>
      <ConfirmStop
        opened={pausing}
        onClose={() => setPausing(false)}
        verb="Pause"
        name={name}
        call={{ method: "POST", path: `${path}:stop` }}
        onConfirm={() => {
          setPausing(false);
          run("stop");
        }}
      >
        Nothing arrives at {name} until it is resumed:{" "}
        {destination.backlog
          ? "its backlog grows on the engine's disk."
          : "the source keeps its WAL for the stream, which rests with it."}
        {stream.destinations.length > 1 && " The other destinations are not affected."}
      </ConfirmStop>
      <ConfirmByName
        opened={dropping}
        onClose={() => {
          drop.reset();
          setDropping(false);
        }}
        title="Drop destination"
        verb="Drop"
        name={name}
        forceExplanation="Drops the destination even if its database, or the engine that applies there, cannot be reached. The operation names what is left behind, with the SQL that removes it."
        call={dropCall}
        pending={drop.isPending}
        problem={drop.isError && <ProblemAlert problem={problemInWords(drop.error)} />}
        onConfirm={(force) => drop.mutate(force, { onSuccess: () => setDropping(false) })}
      >
        {lost}, and the stream's progress at {name} is removed. The tables and rows at {name} stay as they
        are; the other destinations are not affected. To replicate there again, all tables must be copied
        again.
      </ConfirmByName>
    </Group>
  );
}
