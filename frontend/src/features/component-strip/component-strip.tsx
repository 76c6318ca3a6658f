import { Group, Stack, Text, Tooltip } from "@mantine/core";
import {
  IconArrowDown,
  IconArrowsSplit2,
  IconCpu,
  IconDatabaseExport,
  IconPackageExport,
  IconPlugConnected,
  IconSend,
  IconStack2,
} from "@tabler/icons-react";
import type { ReactNode } from "react";
import type { ComponentSample, EngineRef, Sample, Stream, StreamDestination } from "@/api/types";
import { asText, rate } from "@/lib/format";
import { TimeLegend } from "@/ui/time-bar";
import { Appliers, Card, QueueDepth } from "./component-cards";
import classes from "./component-strip.module.css";
import { arrange, ofDestination, outputPlugin, type StripComponents } from "./components";
import { type StripMarks, StripMarksContext } from "./strip-marks";

interface ComponentStripProps {
  sample: Sample;
  stream: Stream;
  /** What stands above a branch's components, where several destinations share the capture. */
  branchHead?: (destination: StreamDestination) => ReactNode;
  /** What the analysis says of the cards: of a destination's branch, or (null) of what all of them share. */
  marksOf?: (destinationId: string | null) => StripMarks;
  /** Stands below the cards of a branch, or (null) of what all of them share. */
  below?: (destinationId: string | null) => ReactNode;
}

const noMarks: StripMarks = () => null;

/** Capture, queue, apply reader, coordinator and appliers from left to right, as the changes flow. */
export function ComponentStrip(props: ComponentStripProps) {
  const { sample, stream, marksOf, below } = props;
  if (stream.mode === "fan-out") return <FanOutStrip {...props} />;
  const parts = arrange(sample.components);
  const only = stream.destinations[0];
  return (
    <StripMarksContext value={marksOf?.(null) ?? noMarks}>
      <Stack gap={10}>
        {stream.mode === "propagation" && only ? (
          <PropagatedStrip parts={parts} captures={stream.capture_engine} applies={only.engine} />
        ) : (
          <ol className={classes.strip} aria-label="Components">
            <SharedCards parts={parts} />
            <ApplyCards parts={parts} />
          </ol>
        )}
        {below?.(null)}
        <TimeLegend />
      </Stack>
    </StripMarksContext>
  );
}

function SharedCards({ parts: { capture, queue } }: { parts: StripComponents }) {
  return (
    <>
      <Card title="Capture" icon={<IconDatabaseExport size={16} aria-hidden />} component={capture}>
        {capture && <OutputPlugin capture={capture} />}
        {capture && <LargeTransactions capture={capture} />}
      </Card>
      <Card title="Queue" icon={<IconStack2 size={16} aria-hidden />} component={queue}>
        {queue && <QueueDepth queue={queue} />}
      </Card>
    </>
  );
}

interface CardsProps {
  parts: StripComponents;
  /** The destination's name, where there are several. */
  of?: string;
}

/** What decodes at the source: a slot keeps its plugin for life. */
function OutputPlugin({ capture }: { capture: ComponentSample }) {
  const plugin = outputPlugin(capture);
  return (
    plugin && (
      <Tooltip label="The output plugin of the stream's slot: what decodes and sends at the source. thalweg_output sends a transaction's changes together and costs the source about a third less time than pgoutput.">
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
          ? "The source sends large transactions while they run, and says at their end which of their savepoints were kept."
          : "The source sends large transactions after their commit: PostgreSQL does not tell of every savepoint that was rolled back, so changes sent earlier could be wrong. A current thalweg_output at the source tells; a stream chooses its plugin when it is created."
      }
    >
      <Text size="xs" c="dimmed">
        {gauges.streaming ? "Large transactions: while they run" : "Large transactions: after their commit"}
      </Text>
    </Tooltip>
  );
}

function ApplyCards({ parts: { reader, coordinator, appliers }, of }: CardsProps) {
  return (
    <>
      <Card title="Apply reader" icon={<IconPackageExport size={16} aria-hidden />} component={reader} />
      <Card title="Coordinator" icon={<IconArrowsSplit2 size={16} aria-hidden />} component={coordinator} />
      <Appliers appliers={appliers} of={of} />
    </>
  );
}

function ReceivingCards({ parts, of }: CardsProps) {
  const { receiver, applyQueue } = parts;
  return (
    <>
      <Card title="Receiver" icon={<IconPlugConnected size={16} aria-hidden />} component={receiver} />
      <Card title="Apply queue" icon={<IconStack2 size={16} aria-hidden />} component={applyQueue}>
        {applyQueue && <QueueDepth queue={applyQueue} />}
      </Card>
      <ApplyCards parts={parts} of={of} />
    </>
  );
}

function Sender({ parts: { sender } }: { parts: StripComponents }) {
  return <Card title="Sender" icon={<IconSend size={16} aria-hidden />} component={sender} />;
}

/** Capture and queue once, then a branch for each destination. */
function FanOutStrip({ sample, stream, branchHead, marksOf, below }: ComponentStripProps) {
  return (
    <Stack gap={10}>
      <section className={classes.engine} aria-label="Shared by all destinations">
        <Group gap={8}>
          <IconCpu size={15} aria-hidden />
          <Text size="sm">
            <Text span fw={600} size="sm">
              {stream.capture_engine.name}
            </Text>{" "}
            captures once for {stream.destinations.length} destinations
          </Text>
        </Group>
        <StripMarksContext value={marksOf?.(null) ?? noMarks}>
          <ol className={classes.strip} data-cards={2} aria-label="Components">
            <SharedCards parts={arrange(sample.components)} />
          </ol>
        </StripMarksContext>
        {below?.(null)}
      </section>
      {stream.destinations.map((one) => {
        const parts = arrange(ofDestination(sample.components, one.id));
        const apart = one.mode === "propagation";
        return (
          <section key={one.id} className={classes.engine} aria-label={`Branch to ${one.database.name}`}>
            {branchHead?.(one)}
            <StripMarksContext value={marksOf?.(one.id) ?? noMarks}>
              <ol
                className={classes.strip}
                data-cards={apart ? 6 : 3}
                aria-label={`Components of ${one.database.name}`}
              >
                {apart && <Sender parts={parts} />}
                {apart ? (
                  <ReceivingCards parts={parts} of={one.database.name} />
                ) : (
                  <ApplyCards parts={parts} of={one.database.name} />
                )}
              </ol>
            </StripMarksContext>
            {below?.(one.id)}
          </section>
        );
      })}
      <TimeLegend />
    </Stack>
  );
}

interface PropagatedStripProps {
  parts: StripComponents;
  captures: EngineRef;
  applies: EngineRef;
}

/** Two rows, one for each engine; between them the link over the network. */
function PropagatedStrip({ parts, captures, applies }: PropagatedStripProps) {
  const flow = rate(parts.receiver?.lcrs_per_second ?? parts.sender?.lcrs_per_second, "LCR");
  return (
    <>
      <EngineRow engine={captures} does="captures and sends" cards={3}>
        <SharedCards parts={parts} />
        <Sender parts={parts} />
      </EngineRow>
      <Group gap={8} className={classes.link}>
        <IconArrowDown size={16} aria-hidden />
        <Text size="xs">
          Propagation from {captures.name} to {applies.name}: {asText(flow)}
        </Text>
      </Group>
      <EngineRow engine={applies} does="receives and applies" cards={5}>
        <ReceivingCards parts={parts} />
      </EngineRow>
    </>
  );
}

interface EngineRowProps {
  engine: EngineRef;
  does: string;
  cards: 3 | 5;
  children: ReactNode;
}

function EngineRow({ engine, does, cards, children }: EngineRowProps) {
  return (
    <section className={classes.engine} aria-label={`Engine ${engine.name}`}>
      <Group gap={8}>
        <IconCpu size={15} aria-hidden />
        <Text size="sm">
          <Text span fw={600} size="sm">
            {engine.name}
          </Text>{" "}
          {does}
        </Text>
      </Group>
      <ol className={classes.strip} data-cards={cards} aria-label={`Components on ${engine.name}`}>
        {children}
      </ol>
    </section>
  );
}
