import { Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { createContext, useContext } from "react";
import { historyQuery } from "@/api/history";
import { problemInWords } from "@/api/problem-in-words";
import type { Finding, FindingEvidence } from "@/api/types";
import { asText, compactCount, type Maybe } from "@/lib/format";
import { statisticQuantity } from "@/lib/statistics";
import { QueryFaces } from "@/ui/query-faces";
import { TimeChart } from "@/ui/time-chart";
import { evidenceLines, historyName } from "./evidence";

/** The run's own span, in milliseconds since the epoch: its evidence is charted with a little before and after. */
export const EvidenceSpan = createContext<{ from: number; until: number } | null>(null);

const AROUND_MS = 120_000;
const LINES_MAX = 8;

const nameOf = (item: FindingEvidence | undefined) => historyName(item?.series ?? "");

/** History of the evidence around the run: one chart for each unit. */
export function EvidenceChart({ finding, evidence }: { finding: Finding; evidence: FindingEvidence[] }) {
  const span = useContext(EvidenceSpan);
  const names = evidence.map(nameOf);
  const range = span
    ? { from: span.from - AROUND_MS, until: span.until + AROUND_MS }
    : { seconds: (2 * AROUND_MS) / 1000 };
  const query = useQuery(historyQuery(finding.stream_id, names, range, 300));
  const units = [...new Set(evidence.map(({ unit }) => unit))];
  return (
    <QueryFaces query={query} inWords={problemInWords} rows={3} loadingLabel="Loading the chart">
      {(history) => (
        <Stack gap="sm" mt={6}>
          {units.map((unit) => {
            const shown = evidence.filter((item) => item.unit === unit).slice(0, LINES_MAX);
            const lines = evidenceLines(shown);
            return (
              <TimeChart
                key={unit}
                title={unit.toLowerCase()}
                times={history.times.map((time) => time * 1000)}
                series={lines.map((line, index) => ({
                  ...line,
                  values:
                    history.series.find(({ statistic }) => statistic === nameOf(shown[index]))?.values ?? [],
                }))}
                format={(value: Maybe) => statisticQuantity(value, unit)}
                height={140}
              />
            );
          })}
          <Text size="xs" c="dimmed">
            {asText(compactCount(history.step_seconds, "s"))} per point, from two minutes before the run to
            two minutes after it.
          </Text>
        </Stack>
      )}
    </QueryFaces>
  );
}
