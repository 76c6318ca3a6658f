import { Badge, Box, Checkbox, Group, Text } from "@mantine/core";
import { IconPin } from "@tabler/icons-react";
import type { RunPath, RunSummary } from "@/api/types";
import { bottleneckInWords, reasonInWords, severityInWords, verdictInWords } from "@/lib/advisor";
import { asText, counted, duration, formatTime, rate } from "@/lib/format";
import { p99OfSpan } from "@/lib/latency-shown";
import { type KnownSum, knownSum, sumQuantity } from "@/lib/sums";
import { AnchorLink } from "@/ui/anchor-link";
import { type Column, DataTable } from "@/ui/data-table";
import { Quantity } from "@/ui/quantity";
import { ToneBadge, ToneIcon } from "@/ui/tone";
import { runTitle, worstPaths } from "./runs";

interface RunsTableProps {
  runs: RunSummary[];
  /** Ids of those marked for comparison, two at most. */
  chosen: number[];
  onChoose: (chosen: number[]) => void;
}

/** Advisor runs, newest first, each with what limited its paths. */
export function RunsTable({ runs, chosen, onChoose }: RunsTableProps) {
  return (
    <DataTable
      label="Advisor runs"
      columns={columns(chosen, onChoose)}
      rows={runs}
      rowKey={(run) => String(run.id)}
    />
  );
}

/** The third choice takes the place of the first. */
function toggled(chosen: number[], id: number): number[] {
  return chosen.includes(id) ? chosen.filter((chosenId) => chosenId !== id) : [...chosen, id].slice(-2);
}

function columns(chosen: number[], onChoose: (chosen: number[]) => void): Column<RunSummary>[] {
  return [
    {
      key: "compare",
      header: "Compare",
      width: 70,
      definition: "Select two runs to compare them.",
      cell: (run) => (
        <Checkbox
          size="md"
          aria-label={`Compare ${runTitle(run)}`}
          checked={chosen.includes(run.id)}
          onChange={() => onChoose(toggled(chosen, run.id))}
        />
      ),
    },
    {
      key: "run",
      header: "Run",
      sortBy: (run) => run.id,
      cell: (run) => <RunCell run={run} />,
    },
    {
      key: "reason",
      header: "Reason",
      sortBy: (run) => run.reason,
      cell: (run) => (
        <Box>
          <Text size="sm">{reasonInWords(run.reason)}</Text>
          <Text size="xs" c="dimmed">
            {run.detail ?? `by ${run.requested_by}`}
          </Text>
        </Box>
      ),
    },
    { key: "bottleneck", header: "Bottleneck", cell: (run) => <Bottlenecks paths={run.paths} /> },
    {
      key: "rate",
      header: "Rate",
      align: "right",
      definition: "LCRs applied per second; for several paths, their sum.",
      sortBy: (run) => messages(run).value,
      cell: (run) => <Quantity quantity={sumQuantity(messages(run), (sum) => rate(sum, "LCR"))} />,
    },
    {
      key: "latency",
      header: "Latency p99",
      align: "right",
      definition:
        "Latency of the slowest path; at least this long (≥) where changes waited and none arrived.",
      sortBy: (run) => slowest(run.paths).value,
      cell: (run) => <Quantity quantity={sumQuantity(slowest(run.paths), duration)} />,
    },
    {
      key: "findings",
      header: "Findings",
      sortBy: (run) => run.findings,
      cell: (run) =>
        run.worst ? (
          <Group gap={5} wrap="nowrap" title={`The worst: ${severityInWords(run.worst).label}`}>
            <ToneIcon tone={severityInWords(run.worst).tone} size={14} />
            <Text size="sm">{run.findings}</Text>
          </Group>
        ) : (
          <Text size="sm" c="dimmed">
            none
          </Text>
        ),
    },
    {
      key: "span",
      header: "Span",
      align: "right",
      definition: "From the first to the last sample that was analysed.",
      cell: (run) => (
        <Text size="sm" title={counted(run.samples, "sample")}>
          {asText(duration(spanSeconds(run)))}
        </Text>
      ),
    },
  ];
}

function RunCell({ run }: { run: RunSummary }) {
  return (
    <Box py={3}>
      <Group gap={6} wrap="nowrap">
        <AnchorLink to="/advisor/runs/$runId" params={{ runId: String(run.id) }} size="sm" fw={600}>
          {runTitle(run)}
        </AnchorLink>
        {run.kept && <IconPin size={13} aria-label="kept" color="var(--text-muted)" />}
      </Group>
      <Text size="xs" c="dimmed" className="numeric">
        {formatTime(run.at)}
      </Text>
      {run.note && (
        <Text size="xs" lineClamp={1} maw={240} title={run.note}>
          {run.note}
        </Text>
      )}
    </Box>
  );
}

function Bottlenecks({ paths }: { paths: RunPath[] }) {
  const shown = worstPaths(paths, 3);
  if (shown.length === 0)
    return (
      <Text size="sm" c="dimmed">
        no paths
      </Text>
    );
  return (
    <Box py={2}>
      {shown.map((path) => (
        <Group key={path.path_id} gap={6}>
          <Text size="xs" c="dimmed">
            {path.path_name}
          </Text>
          {path.bottleneck_identified ? (
            <Group gap={5} wrap="nowrap">
              <ToneIcon tone="warning" size={14} />
              <Text size="sm" title={path.explanation}>
                {bottleneckInWords(path)}
              </Text>
            </Group>
          ) : (
            <ToneBadge state={verdictInWords(path.verdict)} compact />
          )}
        </Group>
      ))}
      {paths.length > shown.length && <Badge size="xs">{paths.length - shown.length} more</Badge>}
    </Box>
  );
}

function messages({ paths }: RunSummary): KnownSum {
  return knownSum(paths.map((path) => path.messages_per_second));
}

function slowest(paths: RunPath[]): KnownSum {
  const latencies = paths.map((path) => p99OfSpan(path.latency_p99_seconds, path.latency_at_least_seconds));
  return latencies.reduce(
    (worst, latency) => ((latency.value ?? -1) > (worst.value ?? -1) ? latency : worst),
    {
      value: null,
      atLeast: false,
    },
  );
}

function spanSeconds({ begin_at, end_at }: RunSummary): number | null {
  return begin_at && end_at ? (Date.parse(end_at) - Date.parse(begin_at)) / 1000 : null;
}
