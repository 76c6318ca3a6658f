import { Stack, Text } from "@mantine/core";
import { type Latency, latencyShown } from "@/lib/latency-shown";
import { Metric, Quantity } from "./quantity";

const metrics = { p50_ms: "latencyP50", p99_ms: "latencyP99" } as const;

interface LatencyProps {
  latency: Latency;
  of: "p50_ms" | "p99_ms";
}

/** A labelled latency; of an idle stream its last heartbeat's, with the age. */
export function LatencyMetric({
  latency,
  of,
  ...look
}: LatencyProps & { label?: string; size?: "sm" | "lg" }) {
  const { quantity, ago } = latencyShown(latency, of);
  return <Metric metric={metrics[of]} quantity={quantity} note={ago} {...look} />;
}

/** The same in a table's cell. */
export function LatencyCell({ latency, of }: LatencyProps) {
  const { quantity, ago } = latencyShown(latency, of);
  return (
    <Stack gap={0} align="flex-end">
      <Quantity quantity={quantity} />
      {ago && (
        <Text size="xs" c="dimmed" style={{ whiteSpace: "nowrap" }}>
          {ago}
        </Text>
      )}
    </Stack>
  );
}
