import { Group, Stack, Text } from "@mantine/core";
import type { StreamError, StreamReport } from "@/api/types";
import { haveOneCause } from "@/lib/causes";
import { formatAgo } from "@/lib/format";
import { StateBadge } from "@/ui/tone";

interface EngineReportsProps {
  reports: StreamReport[];
  /** Errors that the page tells elsewhere, with their cures. */
  shown: (StreamError | null)[];
}

/** Report of each engine on its share of a stream over several engines. */
export function EngineReports({ reports, shown }: EngineReportsProps) {
  return (
    <Group gap={40} align="flex-start" component="section" aria-label="Engines of the stream">
      {reports.map((report) => (
        <Stack key={report.engine.id} gap={2}>
          <Group gap={8}>
            <Text size="sm">
              {report.destination_id === null ? "Captures and sends" : "Receives and applies"}:{" "}
              <Text span fw={600} size="sm">
                {report.engine.name}
              </Text>
            </Text>
            <StateBadge state={report.state} compact />
            <Text size="xs" c="dimmed">
              {report.observed_at ? `seen ${formatAgo(report.observed_at)}` : "has not reported yet"}
            </Text>
          </Group>
          {report.error && !shown.some((error) => haveOneCause(error, report.error)) && (
            <Text size="xs" maw={560}>
              {report.error.title}: {report.error.detail ?? report.error.message} {report.error.cure}
            </Text>
          )}
        </Stack>
      ))}
    </Group>
  );
}
