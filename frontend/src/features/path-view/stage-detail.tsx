import { Box, CloseButton, Group, Text, Title } from "@mantine/core";
import type { AdvisorAnalysis, ComponentStatistic } from "@/api/types";
import { inBarOrder } from "@/lib/activities";
import { asText, rate } from "@/lib/format";
import { sentenceCase } from "@/lib/states";
import { statisticQuantity } from "@/lib/statistics";
import { type Column, DataTable } from "@/ui/data-table";
import { Quantity } from "@/ui/quantity";
import { TimeBar } from "@/ui/time-bar";
import { ToneIcon } from "@/ui/tone";
import { percentOf, type Shares, type Stage, type Thread } from "./path-model";
import classes from "./path-view.module.css";

interface StageDetailProps {
  stage: Stage;
  thresholds: AdvisorAnalysis["thresholds"];
  onClose: () => void;
}

/** A stage down to its threads and what each of them waits for, beside all of its statistics. */
export function StageDetail({ stage, thresholds, onClose }: StageDetailProps) {
  const threads = stage.threads.length > 0 ? stage.threads : own(stage);
  const rows = stage.statistics.filter((row) => row.thread === null);
  return (
    <Box
      component="section"
      aria-label={`${stage.title} in detail`}
      style={{ border: "1px solid var(--border-subtle)", borderRadius: 6, padding: "10px 14px 12px" }}
    >
      <Group justify="space-between" mb={6} wrap="nowrap">
        <div>
          <Title order={3}>{stage.title}</Title>
          <Text size="xs" c="dimmed">
            {[
              stage.name,
              `beside ${stage.database}`,
              stage.engine && `in ${stage.engine}`,
              stage.state && sentenceCase(stage.state),
            ]
              .filter(Boolean)
              .join(" · ")}
          </Text>
        </div>
        <CloseButton aria-label={`Close ${stage.title} in detail`} onClick={onClose} />
      </Group>
      <div className={classes.detail} data-one={threads.length === 0 || undefined}>
        {threads.length > 0 && (
          <div className={classes.scroll}>
            <DataTable
              label={`Threads of ${stage.title}`}
              columns={columns(thresholds)}
              rows={threads}
              rowKey={(thread) => thread.key}
            />
          </div>
        )}
        <DataTable
          label={`Statistics of ${stage.title}`}
          columns={statisticColumns}
          rows={rows}
          rowKey={(row) => row.statistic_name}
          maxHeight={340}
        />
      </div>
    </Box>
  );
}

function own(stage: Stage): Thread[] {
  if (stage.queue) return [];
  const { key, title, shares, messageRate, transactionRate, bottleneck } = stage;
  return [{ key, label: title, number: null, shares, messageRate, transactionRate, top: bottleneck }];
}

/** "Lock 62 %, busy 12 %": what it did when it was neither idle nor held back, the biggest first. */
export function waitsInWords(shares: Shares | null): string {
  if (!shares) return "–";
  const waits = Object.entries(shares.activities)
    .filter(([key, share]) => key !== "idle" && key !== "flow_control" && share >= 0.5)
    .sort(([, a], [, b]) => b - a);
  if (waits.length === 0) return "nothing";
  const label = (key: string) => inBarOrder.find((activity) => activity.key === key)?.label ?? key;
  return waits.map(([key, share]) => `${label(key)} ${asText(percentOf(share))}`).join(", ");
}

function columns(thresholds: AdvisorAnalysis["thresholds"]): Column<Thread>[] {
  return [
    {
      key: "thread",
      header: "Thread",
      cell: (thread) => (
        <Group gap={5} wrap="nowrap">
          {thread.top && <ToneIcon tone="warning" size={13} />}
          <Text size="sm" fw={thread.top ? 600 : undefined} style={{ whiteSpace: "nowrap" }}>
            {thread.label}
          </Text>
        </Group>
      ),
    },
    {
      key: "time",
      header: "Time",
      width: 110,
      cell: (thread) => (
        <TimeBar shares={thread.shares?.activities} label={`${thread.label}, time in detail`} />
      ),
    },
    {
      key: "idle",
      header: "Idle",
      definition: `Waiting for work. Above ${thresholds.idle} % it cannot be the bottleneck.`,
      align: "right",
      sortBy: (thread) => thread.shares?.idle,
      cell: (thread) => <Quantity quantity={percentOf(thread.shares?.idle)} />,
    },
    {
      key: "flow",
      header: "Flow control",
      definition: `Held back by the next component. Above ${thresholds.flow_control} % it is a victim, not the cause.`,
      align: "right",
      sortBy: (thread) => thread.shares?.flowControl,
      cell: (thread) => <Quantity quantity={percentOf(thread.shares?.flowControl)} />,
    },
    {
      key: "waits",
      header: "Work and waits",
      cell: (thread) => (
        <Text size="xs" style={{ minWidth: 110 }}>
          {waitsInWords(thread.shares)}
        </Text>
      ),
    },
    {
      key: "rate",
      header: "Rate",
      align: "right",
      sortBy: (thread) => thread.messageRate ?? thread.transactionRate,
      cell: ({ messageRate, transactionRate }) => (
        <Quantity quantity={messageRate === null ? rate(transactionRate, "txn") : rate(messageRate, "LCR")} />
      ),
    },
  ];
}

const statisticColumns: Column<ComponentStatistic>[] = [
  {
    key: "name",
    header: "Statistic",
    sortBy: (row) => row.statistic_name,
    cell: (row) => row.statistic_name,
  },
  {
    key: "value",
    header: "Value",
    align: "right",
    sortBy: (row) => row.statistic_value,
    cell: (row) => <Quantity quantity={statisticQuantity(row.statistic_value, row.statistic_unit)} />,
  },
];
