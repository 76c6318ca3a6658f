import { Box, Button, Group, Stack, Text } from "@mantine/core";
import { IconChartLine } from "@tabler/icons-react";
import { useState } from "react";
import type { Finding, FindingEvidence } from "@/api/types";
import { threadInWords } from "@/lib/advisor";
import { formatTime } from "@/lib/format";
import { type Column, DataTable } from "@/ui/data-table";
import { useNarrow } from "@/ui/narrow";
import { charted, valueInWords } from "./evidence";
import { EvidenceChart } from "./evidence-chart";
import classes from "./findings.module.css";

/** The figures that a finding rests on, with the thresholds they are judged by; their charts on demand. */
export function EvidenceTable({ finding }: { finding: Finding }) {
  const [open, setOpen] = useState(false);
  const charts = charted(finding);
  const narrow = useNarrow();
  return (
    <Box>
      {narrow ? (
        <EvidenceLines finding={finding} />
      ) : (
        <DataTable
          label={`Evidence of ${finding.title}`}
          columns={columns}
          rows={finding.evidence.map((evidence, index) => ({ ...evidence, key: String(index) }))}
          rowKey={(row) => row.key}
        />
      )}
      {charts.length > 0 && (
        <Group mt={4}>
          <Button
            size="compact-xs"
            variant="subtle"
            leftSection={<IconChartLine size={13} aria-hidden />}
            aria-expanded={open}
            onClick={() => setOpen((now) => !now)}
          >
            {open ? "Hide the chart" : "Show the chart"}
          </Button>
        </Group>
      )}
      {open && <EvidenceChart finding={finding} evidence={charts} />}
    </Box>
  );
}

/** A line for each figure: what a phone has room for. */
function EvidenceLines({ finding }: { finding: Finding }) {
  return (
    <Stack
      component="ul"
      gap={4}
      m={0}
      p={0}
      aria-label={`Evidence of ${finding.title}`}
      style={{ listStyle: "none" }}
    >
      {finding.evidence.map(({ statistic, subject, value, unit, threshold, since }) => (
        <Text component="li" size="xs" key={`${statistic} ${subject} ${value}`} className={classes.line}>
          {statistic}, {threadInWords(subject)}: <strong>{valueInWords(value, unit)}</strong>
          {threshold !== null && `, threshold ${valueInWords(threshold, unit)}`}
          {since && `, since ${formatTime(since)}`}
        </Text>
      ))}
    </Stack>
  );
}

const columns: Column<FindingEvidence & { key: string }>[] = [
  { key: "statistic", header: "Statistic", cell: (row) => row.statistic },
  { key: "subject", header: "Subject", cell: (row) => threadInWords(row.subject) },
  {
    key: "value",
    header: "Value",
    align: "right",
    cell: (row) => <strong>{valueInWords(row.value, row.unit)}</strong>,
  },
  {
    key: "threshold",
    header: "Threshold",
    align: "right",
    definition: "The limit that the value is judged by. Empty: the value is a plain fact.",
    cell: (row) => (row.threshold === null ? "" : valueInWords(row.threshold, row.unit)),
  },
  {
    key: "since",
    header: "Since",
    cell: (row) =>
      row.since && (
        <Text size="xs" className="numeric">
          {formatTime(row.since)}
        </Text>
      ),
  },
];
