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

interface ComponentStripProps {
  sample: Sample;
  stream: Stream;
  /** What stands above a branch's components, where several destinations share the capture. */
  branchHead?: (destination: StreamDestination) => ReactNode;
}

/** Capture, queue, apply reader, coordinator and appliers from left to right, as the changes flow. */
export function ComponentStrip({ sample, stream, branchHead }: ComponentStripProps) {
  const parts = arrange(sample.components);
  if (stream.mode === "fan-out")
    return <FanOutStrip sample={sample} stream={stream} branchHead={branchHead} />;
  const only = stream.destinations[0];
  if (stream.mode === "propagation" && only)
    return <PropagatedStrip parts={parts} captures={stream.capture_engine} applies={only.engine} />;
  return (
    <Stack gap={10}>
      <ol className={classes.strip} aria-label="Components">
        <SharedCards parts={parts} />
        <ApplyCards parts={parts} />
      </ol>
      <TimeLegend />
    </Stack>
  );
}

function SharedCards({ parts: { capture, queue } }: { parts: StripComponents }) {
  return (
    <>
      <Card title="Capture" icon={<IconDatabaseExport size={16} aria-hidden />} component={capture}>
        {capture && <OutputPlugin capture={capture} />}
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
function FanOutStrip({ sample, stream, branchHead }: ComponentStripProps) {
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
        <ol className={classes.strip} data-cards={2} aria-label="Components">
          <SharedCards parts={arrange(sample.components)} />
        </ol>
      </section>
      {stream.destinations.map((one) => {
        const parts = arrange(ofDestination(sample.components, one.id));
        const apart = one.mode === "propagation";
        return (
          <section key={one.id} className={classes.engine} aria-label={`Branch to ${one.database.name}`}>
            {branchHead?.(one)}
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
    <Stack gap={10}>
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
      <TimeLegend />
    </Stack>
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
