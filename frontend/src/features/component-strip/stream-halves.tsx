import { Group, Stack, Text } from "@mantine/core";
import type { StreamHalf } from "@/api/types";
import { formatAgo } from "@/lib/format";
import { StateBadge } from "@/ui/tone";

const roles: Record<StreamHalf["role"], string> = {
  SENDING: "Captures and sends",
  RECEIVING: "Receives and applies",
};

/** What each engine of a stream over two says of its half. */
export function StreamHalves({ halves }: { halves: StreamHalf[] }) {
  return (
    <Group gap={40} align="flex-start" component="section" aria-label="Halves of the stream">
      {halves.map((half) => (
        <Stack key={half.destination_id ?? half.role} gap={2}>
          <Group gap={8}>
            <Text size="sm">
              {roles[half.role]}:{" "}
              <Text span fw={600} size="sm">
                {half.engine.name}
              </Text>
            </Text>
            <StateBadge state={half.status === "ENABLED" ? half.phase : half.status} compact />
            <Text size="xs" c="dimmed">
              {half.observed_at ? `seen ${formatAgo(half.observed_at)}` : "has not reported yet"}
            </Text>
          </Group>
          {half.error && (
            <Text size="xs" maw={560}>
              {half.error.title}: {half.error.detail ?? half.error.message} {half.error.cure}
            </Text>
          )}
        </Stack>
      ))}
    </Group>
  );
}
