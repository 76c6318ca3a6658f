// One component of a path, as a card: its state, rates, time and what it holds.
import { Box, Group, Stack, Text } from "@mantine/core";
import { IconChevronDown, IconDatabaseImport } from "@tabler/icons-react";
import type { ReactNode } from "react";
import type { ComponentSample } from "@/api/types";
import { asText, byteRate, bytes, compactCount, doneOf, latency, rate } from "@/lib/format";
import { type StateInWords, stateInWords } from "@/lib/states";
import { sumQuantity } from "@/lib/sums";
import { Meter } from "@/ui/meter";
import { Metric } from "@/ui/quantity";
import { BottleneckMark, HeldBackBy } from "@/ui/stage-marks";
import { TimeBar } from "@/ui/time-bar";
import { ToneBadge, ToneIcon } from "@/ui/tone";
import classes from "./component-strip.module.css";
import { componentName, counts, sumRate } from "./components";
import { type StripMark, useStripMark } from "./strip-marks";

const notRunning: StateInWords = {
  label: "Not running",
  tone: "quiet",
  definition: "It runs while its stream and its destination do, after the initial copy.",
};

interface CardProps {
  title: string;
  icon: ReactNode;
  component: ComponentSample | null;
  /** The state, where the stream knows it better than the component. */
  state?: StateInWords | null;
  children?: ReactNode;
}

export function Card({ title, icon, component, state, children }: CardProps) {
  const mark = useStripMark(title);
  return (
    <li
      className={classes.card}
      aria-label={title}
      data-bottleneck={mark?.bottleneck || undefined}
      data-opened={mark?.opened || undefined}
    >
      <CardTitle title={title} icon={icon} mark={mark} />
      <Box className={classes.state}>
        <ToneBadge state={state ?? (component ? stateInWords(component.state) : notRunning)} compact wrap />
      </Box>
      {component && <Numbers component={component} title={title} />}
      {children}
      {mark?.heldBackBy && <HeldBackBy stage={mark.heldBackBy} />}
    </li>
  );
}

interface CardTitleProps extends Pick<CardProps, "title" | "icon"> {
  mark: StripMark | null;
  beside?: ReactNode;
}

/** Where the stage's threads are known, the title opens them. */
function CardTitle({ title, icon, mark, beside }: CardTitleProps) {
  return (
    <Group justify="space-between" gap={6} mih={24}>
      <Group gap={6} wrap="nowrap" className={classes.title}>
        {icon}
        <Text size="sm" fw={600} component="h3">
          {mark ? (
            <button
              type="button"
              className={classes.open}
              aria-expanded={mark.opened}
              aria-label={`${title} in detail`}
              onClick={mark.onOpen}
            >
              {title}
              <IconChevronDown size={13} aria-hidden />
            </button>
          ) : (
            title
          )}
        </Text>
        {beside}
      </Group>
      {mark?.bottleneck && <BottleneckMark />}
    </Group>
  );
}

function Numbers({ component, title }: { component: ComponentSample; title: string }) {
  const { gauges, counters } = component;
  const spillRate = component.counter_rates?.spilled_lcrs;
  const wireRate = component.counter_rates?.bytes_sent ?? component.counter_rates?.bytes_received;
  const lcrs = counts(component, "lcrs");
  return (
    <>
      {lcrs ? (
        <Metric metric="componentLcrRate" size="lg" quantity={rate(component.lcrs_per_second, "LCR")} />
      ) : (
        <Metric
          metric="transactionRate"
          size="lg"
          quantity={rate(component.transactions_per_second, "txn")}
        />
      )}
      {component.type !== "QUEUE" && <TimeBar shares={shares(component)} label={`${title}, time`} />}
      <Stack gap={1}>
        {lcrs && counts(component, "transactions") && (
          <Metric metric="transactionRate" quantity={rate(component.transactions_per_second, "txn")} />
        )}
        {counts(component, "bytes") && (
          <Metric metric="byteRate" quantity={byteRate(component.bytes_per_second)} />
        )}
        {gauges.latency_us !== undefined && (
          <Metric metric="componentLatency" quantity={latency(gauges.latency_us)} />
        )}
        {wireRate !== undefined && <Metric metric="wireRate" quantity={byteRate(wireRate)} />}
        {gauges.round_trip_us !== undefined && (
          <Metric metric="roundTrip" quantity={latency(gauges.round_trip_us)} />
        )}
        {gauges.low_watermark_lag_us !== undefined && (
          <Metric metric="watermarkLag" quantity={latency(gauges.low_watermark_lag_us)} />
        )}
        {gauges.waiting_groups !== undefined && (
          <Metric metric="waitingGroups" quantity={compactCount(gauges.waiting_groups)} />
        )}
        {gauges.open_transactions !== undefined && (
          <Metric metric="openTransactions" quantity={compactCount(gauges.open_transactions)} />
        )}
        {gauges.held_bytes !== undefined && <Metric metric="heldBytes" quantity={bytes(gauges.held_bytes)} />}
        {counters.spilled_lcrs !== undefined && (
          <Metric metric="spill" quantity={compactCount(counters.spilled_lcrs, "LCR")} />
        )}
        {spillRate !== undefined && spillRate > 0 && (
          <Metric metric="spillRate" quantity={rate(spillRate, "LCR")} />
        )}
        {gauges.spill_bytes !== undefined && gauges.spill_bytes > 0 && (
          <Metric metric="spillBytes" quantity={bytes(gauges.spill_bytes)} />
        )}
        {gauges.spill_age_us !== undefined && gauges.spill_age_us > 0 && (
          <Metric metric="diskAge" quantity={latency(gauges.spill_age_us)} />
        )}
      </Stack>
    </>
  );
}

/** From here on an applier that executes is said to wait. */
const LOCKED_MIN = 0.5;
const waitsForLock: StateInWords = {
  label: "Waits for a lock",
  tone: "warning",
  definition: "Its statement waits for a lock that another session holds at the destination.",
};

/** To the engine a statement that waits is one that runs; the analysis has looked at the destination's sessions. */
function withLock(known: Record<string, number> | null, locked: number): Record<string, number> | null {
  if (!known || locked === 0) return known;
  const { execute = 0, lock = 0 } = known;
  return { ...known, execute: execute * (1 - locked), lock: lock + execute * locked };
}

function shares(component: ComponentSample): Record<string, number> | null {
  return component.time_percent ? { ...component.time_percent } : null;
}

/** Meaning of a full queue, and what to do next. `full`: a destination's backlog is full, which is the cause then. */
export function FlowControl({ queue, full }: { queue: ComponentSample; full: StateInWords | null }) {
  if (!queue.state?.startsWith("IN FLOW CONTROL")) return null;
  return <Text size="xs">{(full ?? stateInWords(queue.state)).definition}</Text>;
}

export function QueueDepth({ queue }: { queue: ComponentSample }) {
  const { depth, capacity, depth_bytes: depthBytes, memory_bytes: memoryBytes } = queue.gauges;
  const share = depth !== undefined && capacity ? depth / capacity : null;
  const memoryShare = depthBytes !== undefined && memoryBytes ? depthBytes / memoryBytes : null;
  const text = doneOf(depth, capacity, "LCR");
  const memory = `${asText(bytes(depthBytes))} of ${asText(bytes(memoryBytes))}`;
  return (
    <Stack gap={6}>
      <Box>
        <Group justify="space-between" gap={4} wrap="nowrap">
          <Text size="xs" c="dimmed">
            Depth
          </Text>
          <Text size="xs" className="numeric">
            {text}
          </Text>
        </Group>
        <Meter
          label="Queue depth"
          share={share}
          text={text}
          tone={share !== null && share > 0.9 ? "warning" : "busy"}
        />
      </Box>
      <Box>
        <Group justify="space-between" gap={4} wrap="nowrap">
          <Text size="xs" c="dimmed">
            Memory
          </Text>
          <Text size="xs" className="numeric">
            {memory}
          </Text>
        </Group>
        <Meter
          label="Queue memory"
          share={memoryShare}
          text={memory}
          tone={memoryShare !== null && memoryShare > 0.9 ? "warning" : "busy"}
        />
      </Box>
    </Stack>
  );
}

/** `of` names the destination, where there are several. */
export function Appliers({ appliers, of }: { appliers: ComponentSample[]; of?: string }) {
  const label = of ? `Each applier at ${of}` : "Each applier";
  const mark = useStripMark("Appliers");
  return (
    <li
      className={classes.card}
      aria-label="Appliers"
      data-bottleneck={mark?.bottleneck || undefined}
      data-opened={mark?.opened || undefined}
    >
      <CardTitle
        title="Appliers"
        icon={<IconDatabaseImport size={16} aria-hidden />}
        mark={mark}
        beside={
          <Text size="xs" c="dimmed">
            {appliers.length || "none"}
          </Text>
        }
      />
      <Metric
        metric="componentLcrRate"
        size="lg"
        quantity={sumQuantity(sumRate(appliers, "lcrs_per_second"), (sum) => rate(sum, "LCR"))}
      />
      <Stack gap={1}>
        <Metric
          metric="transactionRate"
          quantity={sumQuantity(sumRate(appliers, "transactions_per_second"), (sum) => rate(sum, "txn"))}
        />
        <Metric metric="byteRate" quantity={sumQuantity(sumRate(appliers, "bytes_per_second"), byteRate)} />
      </Stack>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard */}
      <section className={classes.appliers} tabIndex={0} aria-label={label}>
        {appliers.map((applier) => (
          <ApplierRow key={applier.id} applier={applier} locked={mark?.locked ?? 0} />
        ))}
      </section>
    </li>
  );
}

function ApplierRow({ applier, locked }: { applier: ComponentSample; locked: number }) {
  const waits = locked >= LOCKED_MIN && applier.state === "EXECUTE TRANSACTION";
  const state = waits ? waitsForLock : stateInWords(applier.state);
  const name = componentName(applier);
  return (
    <div className={classes.applier}>
      <Group gap={5} wrap="nowrap" miw={0}>
        <ToneIcon tone={state.tone} size={13} />
        <Text size="xs" truncate title={state.definition}>
          <Text span fw={600} size="xs">
            {applier.server}
          </Text>{" "}
          {state.label}
        </Text>
      </Group>
      <Text size="xs" ta="right" className="numeric" style={{ whiteSpace: "nowrap" }}>
        {asText(rate(applier.lcrs_per_second, "LCR"))}
      </Text>
      <Box style={{ gridColumn: "1 / -1" }}>
        <TimeBar shares={withLock(shares(applier), locked)} label={`${name}, time`} />
      </Box>
    </div>
  );
}
