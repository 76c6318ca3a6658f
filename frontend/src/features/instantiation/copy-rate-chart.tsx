import { Box, Text } from "@mantine/core";
import { useMemo } from "react";
import type { Instantiation } from "@/api/types";
import { rate } from "@/lib/format";
import { TimeChart } from "@/ui/time-chart";
import { ratesOf } from "./copy-rate";

const rows = (value: number | null | undefined) => rate(value, "rows");

/** From the copy's begin, as the control plane has seen it. */
export function CopyRateChart({ curve }: Pick<Instantiation, "curve">) {
  const points = useMemo(
    () => curve.map(({ at, rows_copied }) => ({ at: Date.parse(at), rows: rows_copied })),
    [curve],
  );
  if (points.length < 2)
    return (
      <Text px={14} size="xs" c="dimmed">
        The chart begins with the engine's second report.
      </Text>
    );
  return (
    <Box px={14}>
      <TimeChart
        title="Rate of the copy"
        times={points.map((point) => point.at)}
        series={[{ label: "Copied", colour: 3, values: ratesOf(points) }]}
        format={rows}
        height={120}
      />
    </Box>
  );
}
