import { Box, Group, Stack, Text } from "@mantine/core";
import type { Instantiation } from "@/api/types";
import { copiedInWords, copiedOf, copiedShare } from "@/lib/copied";
import { byteRate, bytes, duration, formatCount, rate } from "@/lib/format";
import { Meter } from "@/ui/meter";
import { Metric } from "@/ui/quantity";
import { CopyRateChart } from "./copy-rate-chart";
import { CopyTables } from "./copy-tables";
import { indexesInWords } from "./copy-time";

interface InstantiationProgressProps {
  instantiation: Instantiation;
  /** The destination's state where it is not copying now, in words; null while it is. */
  interrupted: string | null;
}

/** A copy that has begun: rows first, then indexes and foreign keys. */
export function InstantiationProgress({ instantiation, interrupted }: InstantiationProgressProps) {
  const indexes = instantiation.stage === "indexes";
  const copied = copiedOf(instantiation.tables);
  const text = indexes
    ? `all rows are there, indexes built: ${instantiation.indexes_built} of ${instantiation.indexes_total}`
    : copiedInWords(copied);
  return (
    <Stack gap="sm">
      <Box px={14}>
        <Group justify="space-between" mb={6} gap="xl">
          <Text size="sm" fw={550} className="numeric">
            {text}
          </Text>
          <Group gap="xl">
            <Metric
              metric="rowsCopied"
              quantity={{ value: formatCount(instantiation.rows_copied), unit: "rows" }}
            />
            <Metric metric="bytesCopied" quantity={bytes(instantiation.bytes_copied)} />
            <Metric metric="copyRate" quantity={rate(instantiation.rows_per_second, "rows")} />
            <Metric metric="copyRate" label="Bytes" quantity={byteRate(instantiation.bytes_per_second)} />
            {!indexes && <Metric metric="rowsLeft" quantity={duration(instantiation.rows_seconds_left)} />}
            <Metric metric="indexesLeft" quantity={duration(instantiation.indexes_seconds_left)} />
            {!indexes && <Metric metric="copyLeft" quantity={duration(instantiation.seconds_left)} />}
          </Group>
        </Group>
        <Meter
          role="progressbar"
          label="Initial copy of all tables"
          share={indexes ? 1 : copiedShare(copied)}
          text={text}
          tone={interrupted === null ? "busy" : "warning"}
        />
        <Text size="xs" c="dimmed" mt={6}>
          {interrupted !== null
            ? `The copy is interrupted (${interrupted}). It goes on from here when the destination runs again.`
            : indexesInWords(instantiation)}
        </Text>
      </Box>
      <CopyRateChart curve={instantiation.curve} />
      <CopyTables tables={instantiation.tables} />
    </Stack>
  );
}
