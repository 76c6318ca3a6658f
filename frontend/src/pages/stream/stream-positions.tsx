import { Code, Group, Text, Tooltip } from "@mantine/core";
import type { Stream } from "@/api/types";
import { modeInWords } from "@/lib/states";
import { Panel } from "@/ui/panel";

const positions = [
  ["source_end", "Source's end", "The source has written its WAL up to here."],
  ["captured", "Captured", "Changes have been read from the source up to here."],
  ["applied", "Applied", "Everything up to here is committed at the destination (low watermark)."],
  [
    "confirmed",
    "Confirmed",
    "The source may remove its WAL up to here: it is durable at every destination or on the engine's disk.",
  ],
] as const;

export function StreamPositions({
  positions: known,
  mode,
}: {
  positions: NonNullable<Stream["positions"]>;
  mode: Stream["mode"];
}) {
  return (
    <Panel
      title="Positions"
      aside={
        <Text size="xs" c="dimmed">
          {modeInWords(mode)}
        </Text>
      }
    >
      <Group gap={32}>
        {positions.map(([key, label, definition]) => (
          <Tooltip key={key} label={definition}>
            <Group gap={8}>
              <Text size="xs" c="dimmed">
                {label}
              </Text>
              <Code>{known[key] ?? "–"}</Code>
            </Group>
          </Tooltip>
        ))}
      </Group>
    </Panel>
  );
}
