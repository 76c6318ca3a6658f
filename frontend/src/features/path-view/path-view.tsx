import { Group, Stack, Text } from "@mantine/core";
import { IconArrowRight, IconCpu } from "@tabler/icons-react";
import { type CSSProperties, useState } from "react";
import type { AdvisorAnalysis } from "@/api/types";
import { asText, bytes, compactCount, duration, rate } from "@/lib/format";
import { Meter } from "@/ui/meter";
import { Quantity } from "@/ui/quantity";
import { BottleneckMark, HeldBackBy } from "@/ui/stage-marks";
import { TimeBar, TimeLegend } from "@/ui/time-bar";
import { byEngine, pathModel, percentOf, type Stage } from "./path-model";
import { PathVerdict } from "./path-verdict";
import classes from "./path-view.module.css";
import { StageDetail } from "./stage-detail";

interface PathViewProps {
  analysis: AdvisorAnalysis;
  pathId: string;
  /** Title of the path's most pressing finding. */
  finding: string | null;
}

/** A path from left to right, what each stage does with its time, and what limits it. A stage opens to its threads. */
export function PathView({ analysis, pathId, finding }: PathViewProps) {
  const model = pathModel(analysis, pathId);
  const [chosen, setChosen] = useState<string | null>(null);
  const stage = model.stages.find(({ key }) => key === chosen) ?? null;
  const rows = byEngine(model.stages);
  return (
    <Stack gap={12} className={classes.view}>
      <PathVerdict model={model} finding={finding} />
      {rows.map((row) => (
        <EngineRow key={row.stages[0]?.key} engine={rows.length > 1 ? row.engine : null}>
          <ol
            className={classes.strip}
            style={{ "--stages": row.stages.length } as CSSProperties}
            aria-label={rows.length > 1 ? `Path on ${row.engine}` : "Path"}
          >
            {row.stages.map((rowStage, place) => (
              <StageCard
                key={rowStage.key}
                stage={rowStage}
                chosen={rowStage.key === chosen}
                onChoose={() => setChosen((now) => (now === rowStage.key ? null : rowStage.key))}
                last={place === row.stages.length - 1}
              />
            ))}
          </ol>
        </EngineRow>
      ))}
      <TimeLegend />
      {stage && (
        <StageDetail stage={stage} thresholds={analysis.thresholds} onClose={() => setChosen(null)} />
      )}
    </Stack>
  );
}

function EngineRow({ engine, children }: { engine: string | null; children: React.ReactNode }) {
  if (engine === null) return children;
  return (
    <section className={classes.engine} aria-label={`Engine ${engine}`}>
      <Group gap={8}>
        <IconCpu size={15} aria-hidden />
        <Text size="sm" fw={600}>
          {engine}
        </Text>
      </Group>
      {children}
    </section>
  );
}

interface StageCardProps {
  stage: Stage;
  chosen: boolean;
  onChoose: () => void;
  last: boolean;
}

function StageCard({ stage, chosen, onChoose, last }: StageCardProps) {
  const byTransactions = stage.messageRate === null && stage.transactionRate !== null;
  return (
    <li className={classes.stage} aria-label={stage.title}>
      <div
        className={classes.card}
        data-chosen={chosen || undefined}
        data-bottleneck={stage.bottleneck || undefined}
      >
        <span className={classes.head}>
          <button
            type="button"
            className={classes.title}
            aria-expanded={chosen}
            aria-label={`${stage.title} in detail`}
            onClick={onChoose}
          >
            {stage.title}
          </button>
          {stage.bottleneck && <BottleneckMark />}
        </span>
        <Quantity
          size="lg"
          metric={byTransactions ? "transactionRate" : "componentLcrRate"}
          quantity={byTransactions ? rate(stage.transactionRate, "txn") : rate(stage.messageRate, "LCR")}
        />
        {stage.queue ? <QueueFill stage={stage} /> : <Utilisation stage={stage} />}
        <Numbers stage={stage} />
        {stage.heldBackBy && <HeldBackBy stage={stage.heldBackBy} />}
      </div>
      {!last && (
        <span className={classes.link} data-held={stage.heldBackBy ? true : undefined}>
          <IconArrowRight size={18} stroke={2} aria-hidden />
        </span>
      )}
    </li>
  );
}

function Utilisation({ stage }: { stage: Stage }) {
  return (
    <span className={classes.block}>
      <span className={classes.number}>
        <span>Occupied</span>
        <Quantity quantity={percentOf(stage.shares?.occupied)} />
      </span>
      <TimeBar shares={stage.shares?.activities} label={`${stage.title}, time`} />
      {stage.threads.length > 1 && (
        <span className={classes.bars}>
          {stage.threads.map((thread) => (
            <TimeBar
              key={thread.key}
              shares={thread.shares?.activities}
              label={`${thread.label}, time`}
              thin
            />
          ))}
        </span>
      )}
    </span>
  );
}

function QueueFill({ stage }: { stage: Stage }) {
  const {
    depth,
    capacity,
    bytes: used,
    fill,
  } = stage.queue ?? { depth: null, capacity: null, bytes: null, fill: null };
  const text = `${asText(compactCount(depth))} of ${asText(compactCount(capacity, "LCR"))}`;
  return (
    <span className={classes.block}>
      <span className={classes.number}>
        <span>Filled</span>
        <Quantity quantity={percentOf(fill)} />
      </span>
      <Meter
        label={`${stage.title}, fill`}
        share={fill === null ? null : fill / 100}
        text={text}
        tone={fill !== null && fill > 90 ? "warning" : "busy"}
      />
      <span className={classes.number}>
        <span>Depth</span>
        <span className="numeric">{text}</span>
      </span>
      <span className={classes.number}>
        <span>Memory</span>
        <Quantity quantity={bytes(used)} />
      </span>
    </span>
  );
}

function Numbers({ stage }: { stage: Stage }) {
  const { spill } = stage;
  const spilled = spill !== null && ((spill.bytes ?? 0) > 0 || (spill.rate ?? 0) > 0);
  return (
    <span className={classes.numbers}>
      {stage.latency !== null && (
        <span className={classes.number}>
          <span>Latency so far</span>
          <Quantity quantity={duration(stage.latency)} metric="componentLatency" />
        </span>
      )}
      {spilled && (
        <>
          <span className={classes.number}>
            <span>Spilled</span>
            <Quantity quantity={bytes(spill.bytes)} metric="spillBytes" />
          </span>
          {spill.transactions !== null && (
            <span className={classes.number}>
              <span>Spilled txn</span>
              <Quantity quantity={compactCount(spill.transactions)} />
            </span>
          )}
          <span className={classes.number}>
            <span>Spill rate</span>
            <Quantity quantity={rate(spill.rate, "LCR")} metric="spillRate" />
          </span>
        </>
      )}
    </span>
  );
}
