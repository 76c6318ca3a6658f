import { Box, Button, Group, Text } from "@mantine/core";
import { IconChartLine } from "@tabler/icons-react";
import { useState } from "react";
import type { Finding, FindingEvidence } from "@/api/types";
import { threadInWords } from "@/lib/advisor";
import { formatTime } from "@/lib/format";
import { type Column, DataTable } from "@/ui/data-table";
import { charted, valueInWords } from "./evidence";
import { EvidenceChart } from "./evidence-chart";

/** The figures that a finding rests on, with the thresholds they are judged by; their charts on demand. */
export function EvidenceTable({ finding }: { finding: Finding }) {
  const [open, setOpen] = useState(false);
  const charts = charted(finding);
  return (
    <Box>
      <DataTable
        label={`Evidence of ${finding.title}`}
        columns={columns}
        rows={finding.evidence.map((evidence, index) => ({ ...evidence, key: String(index) }))}
        rowKey={(row) => row.key}
      />
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

const columns: Column<FindingEvidence & { key: string }>[] = [
  { key: "statistic", header: "Statistic", cell: (row) => row.statistic },
  { key: "subject", header: "Of", cell: (row) => threadInWords(row.subject) },
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
    definition: "What the value is judged by. Empty: it is a fact.",
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
