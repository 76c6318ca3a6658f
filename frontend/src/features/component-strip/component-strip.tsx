import { Group, Stack, Text, Tooltip } from "@mantine/core";
import {
  IconArrowsSplit2,
  IconCpu,
  IconDatabaseExport,
  IconPackageExport,
  IconPlugConnected,
  IconSend,
  IconStack2,
} from "@tabler/icons-react";
import type { ReactNode } from "react";
import type { ComponentSample, Sample, Stream, StreamDestination } from "@/api/types";
import { asText, bytes, latency } from "@/lib/format";
import { stateInWords, waitsForRoom } from "@/lib/states";
import { TimeLegend } from "@/ui/time-bar";
import { ToneBadge } from "@/ui/tone";
import { Appliers, Card, FlowControl, QueueDepth } from "./component-cards";
import classes from "./component-strip.module.css";
import { arrange, ofDestination, outputPlugin, type StripComponents } from "./components";
import { type StripMarks, StripMarksContext } from "./strip-marks";

interface ComponentStripProps {
  sample: Sample;
  stream: Stream;
  /** Content above a destination's components. */
  destinationHead?: (destination: StreamDestination) => ReactNode;
  /** The analysis's marks on the cards: on a destination's, or (null) on those that all of them share. */
  marksOf?: (destinationId: string | null) => StripMarks;
  /** Content below the cards of a destination, or (null) below those that all of them share. */
  below?: (destinationId: string | null) => ReactNode;
}

const noMarks: StripMarks = () => null;

/** As the changes flow: capture and queue once, then the components of each destination. */
export function ComponentStrip({ sample, stream, destinationHead, marksOf, below }: ComponentStripProps) {
  const count = stream.destinations.length;
  return (
    <Stack gap={10}>
      <section className={classes.engine} aria-label="Shared by all destinations">
        <Group gap={8}>
          <IconCpu size={15} aria-hidden />
          <Text size="sm">
            <Text span fw={600} size="sm">
              {stream.capture_engine.name}
            </Text>{" "}
            {count > 1 ? `captures once for ${count} destinations` : "captures"}
          </Text>
        </Group>
        <StripMarksContext value={marksOf?.(null) ?? noMarks}>
          <ol className={classes.strip} data-cards={2} aria-label="Components">
            <SharedCards parts={arrange(sample.components)} stream={stream} />
          </ol>
        </StripMarksContext>
        {below?.(null)}
      </section>
      {stream.destinations.map((destination) => {
        const parts = arrange(ofDestination(sample.components, destination.id));
        const received = destination.engine.id !== stream.capture_engine.id;
        return (
          <section
            key={destination.id}
            className={classes.engine}
            aria-label={`Destination ${destination.database.name}`}
          >
            {destinationHead?.(destination)}
            <StripMarksContext value={marksOf?.(destination.id) ?? noMarks}>
              <ol
                className={classes.strip}
                data-cards={received ? 6 : 3}
                aria-label={`Components of ${destination.database.name}`}
              >
                {received && <ReceivingCards parts={parts} />}
                <ApplyCards parts={parts} of={destination.database.name} />
              </ol>
            </StripMarksContext>
            {below?.(destination.id)}
          </section>
        );
      })}
      <TimeLegend />
    </Stack>
  );
}

interface SharedCardsProps {
  parts: StripComponents;
  stream: Stream;
}

function SharedCards({ parts: { capture, shipment, builder, queue }, stream }: SharedCardsProps) {
  const mines = stream.capture_kind === "wal";
  const isHeld = capture?.state === "PAUSED FOR FLOW CONTROL";
  return (
    <>
      <Card
        title="Capture"
        icon={<IconDatabaseExport size={16} aria-hidden />}
        component={capture}
        state={isHeld ? waitsForRoom(stream.destinations) : null}
      >
        {capture && !mines && <OutputPlugin capture={capture} />}
        {capture && !mines && <LargeTransactions capture={capture} />}
        {mines && shipment && <Shipment shipment={shipment} kept={builder?.gauges.kept_bytes ?? 0} />}
        {mines && builder && <Held builder={builder} />}
      </Card>
      <Card title="Queue" icon={<IconStack2 size={16} aria-hidden />} component={queue}>
        {queue && <FlowControl queue={queue} full={waitsForRoom(stream.destinations)} />}
        {queue && <QueueDepth queue={queue} />}
      </Card>
    </>
  );
}

function Shipment({
  shipment: { state, counters, gauges },
  kept,
}: {
  shipment: ComponentSample;
  kept: number;
}) {
  return (
    <Group gap={6}>
      <ToneBadge state={stateInWords(state)} compact wrap />
      <Tooltip label="The source's WAL on the engine's disk, and its limit. At the limit the source keeps what follows, unless an archive has it.">
        <Text size="xs" c="dimmed">
          {`Staged: ${asText(bytes(gauges.staged_bytes))} of ${asText(bytes(gauges.staging_limit_bytes))}`}
        </Text>
      </Tooltip>
      {kept > 0 && (
        <Tooltip label="The part of the staged WAL that no destination needs any more: it is kept for searches, and goes first at the limit.">
          <Text size="xs" c="dimmed">{`Kept for searches: ${asText(bytes(kept))}`}</Text>
        </Tooltip>
      )}
      {(counters.archived_bytes ?? 0) > 0 && (
        <Tooltip label="WAL that came from the archive since the engine's shipment began.">
          <Text size="xs" c="dimmed">{`From the archive: ${asText(bytes(counters.archived_bytes))}`}</Text>
        </Tooltip>
      )}
      {(gauges.archive_wait_us ?? 0) > 0 && (
        <Tooltip label="The archive lacks the WAL that is next, and the source cannot be read or no longer has it.">
          <Text size="xs" c="dimmed">{`Archive lags: ${asText(latency(gauges.archive_wait_us))}`}</Text>
        </Tooltip>
      )}
    </Group>
  );
}

function Held({ builder: { gauges } }: { builder: ComponentSample }) {
  return (
    <Tooltip label="Rows of open transactions in the engine's memory. Above the limit large ones go out before their commit.">
      <Text size="xs" c="dimmed">
        {`Held: ${asText(bytes(gauges.held_bytes))} of ${asText(bytes(gauges.memory_limit_bytes))}`}
      </Text>
    </Tooltip>
  );
}

/** The plugin that decodes at the source: a slot keeps its plugin for life. */
function OutputPlugin({ capture }: { capture: ComponentSample }) {
  const plugin = outputPlugin(capture);
  return (
    plugin && (
      <Tooltip label="The output plugin of the stream's slot: it decodes changes at the source and sends them. thalweg_output sends a transaction's changes together and takes about a third less of the source's time than pgoutput.">
        <Text size="xs" c="dimmed" ff="monospace">
          {plugin}
        </Text>
      </Tooltip>
    )
  );
}

/** Before their commit only where the source says which of their subtransactions committed. */
function LargeTransactions({ capture: { gauges } }: { capture: ComponentSample }) {
  if (gauges.streaming === undefined) return null;
  return (
    <Tooltip
      multiline
      maw={360}
      label={
        gauges.streaming
          ? "The source sends large transactions while they run, and says at the end which of their savepoints were kept."
          : "The source sends large transactions after their commit: PostgreSQL does not report every savepoint that was rolled back, so changes sent earlier could be wrong. A current thalweg_output at the source reports them all; a stream's plugin is chosen when the stream is created."
      }
    >
      <Text size="xs" c="dimmed">
        {gauges.streaming ? "Large transactions: while they run" : "Large transactions: after their commit"}
      </Text>
    </Tooltip>
  );
}

/** Of a destination that another engine applies, before its apply. */
function ReceivingCards({ parts: { sender, receiver, applyQueue } }: { parts: StripComponents }) {
  return (
    <>
      <Card title="Sender" icon={<IconSend size={16} aria-hidden />} component={sender} />
      <Card title="Receiver" icon={<IconPlugConnected size={16} aria-hidden />} component={receiver} />
      <Card title="Apply queue" icon={<IconStack2 size={16} aria-hidden />} component={applyQueue}>
        {applyQueue && <FlowControl queue={applyQueue} full={null} />}
        {applyQueue && <QueueDepth queue={applyQueue} />}
      </Card>
    </>
  );
}

interface ApplyCardsProps {
  parts: StripComponents;
  /** The destination's name. */
  of: string;
}

function ApplyCards({ parts: { reader, coordinator, appliers }, of }: ApplyCardsProps) {
  return (
    <>
      <Card title="Apply reader" icon={<IconPackageExport size={16} aria-hidden />} component={reader} />
      <Card title="Coordinator" icon={<IconArrowsSplit2 size={16} aria-hidden />} component={coordinator} />
      <Appliers appliers={appliers} of={of} />
    </>
  );
}
