import { Button, Group, Stack, Text } from "@mantine/core";
import type { Search } from "@/api/types";
import { asText, bytes, counted, percent } from "@/lib/format";
import { Meter } from "@/ui/meter";

interface SearchProgressProps {
  search: Search;
  ending: boolean;
  onEnd: () => void;
}

export function SearchProgress({ search, ending, onEnd }: SearchProgressProps) {
  const share = search.total_bytes > 0 ? Math.min(0.99, search.mined_bytes / search.total_bytes) : null;
  const text = `${asText(percent(share))} of ${asText(bytes(search.total_bytes))} read, ${counted(search.found, "change")} found`;
  return (
    <Stack gap={6} p={14} role="status">
      <Group justify="space-between">
        <Text size="sm">Searching: {text}</Text>
        <Button variant="default" size="xs" loading={ending} onClick={onEnd}>
          Cancel search
        </Button>
      </Group>
      <Meter label="Read of the log" role="progressbar" share={share} text={text} />
    </Stack>
  );
}
