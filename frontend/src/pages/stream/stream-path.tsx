import { Group, SegmentedControl, Stack, Text } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import type { Stream } from "@/api/types";
import { TakeSnapshot } from "@/features/advisor-runs/take-snapshot";
import { AnchorLink } from "@/ui/anchor-link";
import { StreamAnalysis } from "./stream-analysis";

/** The path as it is now. What is worth keeping becomes a run. */
export function StreamPath({ stream, mayAct }: { stream: Stream; mayAct: boolean }) {
  const [seconds, setSeconds] = useState(10);
  const navigate = useNavigate();
  return (
    <Stack gap="sm">
      <Group justify="space-between">
        <Group gap="xs">
          <Text size="xs" c="dimmed">
            Mean of the last
          </Text>
          <SegmentedControl
            size="xs"
            aria-label="Seconds that the path is analysed over"
            value={String(seconds)}
            onChange={(value) => setSeconds(Number(value))}
            data={[
              { value: "3", label: "3 s" },
              { value: "10", label: "10 s" },
              { value: "60", label: "1 min" },
              { value: "600", label: "10 min" },
            ]}
          />
        </Group>
        <Group gap="sm">
          <AnchorLink to="/advisor" search={{ stream: stream.id }} size="sm">
            Runs of this stream
          </AnchorLink>
          <TakeSnapshot
            mayAct={mayAct}
            streams={[stream]}
            streamId={stream.id}
            onTaken={(run) => navigate({ to: "/advisor/runs/$runId", params: { runId: String(run.id) } })}
          />
        </Group>
      </Group>
      <StreamAnalysis title="Path, live" scope={{ stream_id: stream.id, window_seconds: seconds }} />
    </Stack>
  );
}
