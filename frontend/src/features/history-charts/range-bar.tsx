import { Button, Group, Popover, SegmentedControl, Stack, Text, TextInput } from "@mantine/core";
import { IconCalendarSearch, IconZoomReset } from "@tabler/icons-react";
import { useState } from "react";
import type { HistoryRange } from "@/api/history";
import { formatTime } from "@/lib/format";
import { faultOf, fromField, ranges, toField } from "./ranges";

interface RangeBarProps {
  range: HistoryRange;
  onSeconds: (seconds: number) => void;
  onAnalyse: (from: number, until: number) => void;
}

/** How far the charts reach, and by keyboard what dragging does by mouse. */
export function RangeBar({ range, onSeconds, onAnalyse }: RangeBarProps) {
  const zoomed = "from" in range;
  return (
    <Group justify="space-between" gap="xs">
      <Group gap="xs">
        <SegmentedControl
          size="xs"
          aria-label="Time shown in the charts"
          value={zoomed ? "" : String(range.seconds)}
          onChange={(value) => onSeconds(Number(value))}
          data={ranges.map(({ seconds, label }) => ({ value: String(seconds), label }))}
        />
        {zoomed && (
          <>
            <Text size="xs" className="numeric">
              {formatTime(new Date(range.from).toISOString())} to{" "}
              {formatTime(new Date(range.until).toISOString())}
            </Text>
            <Button
              variant="default"
              leftSection={<IconZoomReset size={14} aria-hidden />}
              onClick={() => onSeconds(900)}
            >
              Back to now
            </Button>
          </>
        )}
      </Group>
      <AskRange onAnalyse={onAnalyse} />
    </Group>
  );
}

const FIVE_MINUTES_MS = 300_000;

function AskRange({ onAnalyse }: Pick<RangeBarProps, "onAnalyse">) {
  const [opened, setOpened] = useState(false);
  const [begin, setBegin] = useState("");
  const [end, setEnd] = useState("");
  const [from, until] = [fromField(begin), fromField(end)];
  const fault = faultOf(from, until);
  const open = () => {
    setBegin(toField(Date.now() - FIVE_MINUTES_MS));
    setEnd(toField(Date.now()));
    setOpened(true);
  };
  return (
    <Popover opened={opened} onChange={setOpened} position="bottom-end" withArrow trapFocus returnFocus>
      <Popover.Target>
        <Button
          variant="default"
          leftSection={<IconCalendarSearch size={14} aria-hidden />}
          onClick={() => (opened ? setOpened(false) : open())}
        >
          What happened at …
        </Button>
      </Popover.Target>
      <Popover.Dropdown aria-label="What happened">
        <form
          onSubmit={(event) => {
            event.preventDefault();
            if (fault || from === null || until === null) return;
            setOpened(false);
            onAnalyse(from, until);
          }}
        >
          <Stack gap="xs">
            <TextInput
              type="datetime-local"
              step={1}
              label="From"
              value={begin}
              onChange={(event) => setBegin(event.currentTarget.value)}
            />
            <TextInput
              type="datetime-local"
              step={1}
              label="Until"
              value={end}
              error={fault}
              onChange={(event) => setEnd(event.currentTarget.value)}
            />
            <Button type="submit" disabled={fault !== null}>
              Analyse
            </Button>
          </Stack>
        </form>
      </Popover.Dropdown>
    </Popover>
  );
}
