import { Group, Text } from "@mantine/core";
import { formatTime } from "@/lib/format";
import { Panel } from "@/ui/panel";
import { ToneIcon } from "@/ui/tone";
import type { HistoryEvent } from "./events";

interface EventListProps {
  events: HistoryEvent[];
  /** Others may come. */
  loading: boolean;
  /** Events of the range that the list lacks, in words. */
  missing: string[];
}

/** The marks of the charts in words, the newest first. */
export function EventList({ events, loading, missing }: EventListProps) {
  return (
    <Panel title="Events">
      {missing.map((part) => (
        <Group key={part} gap={10} wrap="nowrap" mb={6} align="flex-start">
          <ToneIcon tone="warning" size={15} />
          <Text size="sm">{part}</Text>
        </Group>
      ))}
      {events.length === 0 && missing.length === 0 ? (
        <Text size="sm" c="dimmed">
          {loading ? "Looking for events." : "No restarts, changes, cures, outages or alerts in this range."}
        </Text>
      ) : (
        <ul aria-label="Events" style={{ listStyle: "none", margin: 0, padding: 0, display: "grid", gap: 6 }}>
          {[...events].reverse().map(({ key, at, tone, kind, text }) => (
            <Group key={key} component="li" gap={10} wrap="nowrap" align="flex-start">
              <ToneIcon tone={tone} size={15} />
              <Text size="xs" className="numeric" c="dimmed" style={{ flex: "none" }}>
                {formatTime(new Date(at).toISOString())}
              </Text>
              <Text size="sm">
                <Text span size="sm" fw={600}>
                  {kind}:
                </Text>{" "}
                {text}
              </Text>
            </Group>
          ))}
        </ul>
      )}
    </Panel>
  );
}
