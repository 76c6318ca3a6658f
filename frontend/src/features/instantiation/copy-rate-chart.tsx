import { Box, Text } from "@mantine/core";
import { useEffect, useState } from "react";
import { rate } from "@/lib/format";
import { TimeChart } from "@/ui/time-chart";
import { type CopyPoint, ratesOf, withPoint } from "./copy-rate";

const rows = (value: number | null | undefined) => rate(value, "rows");

/** From when the page was opened: nobody keeps the rates of copies. */
export function CopyRateChart({ rowsCopied, at }: { rowsCopied: number; at: string | null }) {
  const [points, setPoints] = useState<CopyPoint[]>([]);
  useEffect(() => {
    if (at !== null) setPoints((known) => withPoint(known, { at: Date.parse(at), rows: rowsCopied }));
  }, [at, rowsCopied]);
  if (points.length < 2)
    return (
      <Text px={14} size="xs" c="dimmed">
        The chart begins with the engine's second report.
      </Text>
    );
  return (
    <Box px={14}>
      <TimeChart
        title="Rate since this page was opened"
        times={points.map((point) => point.at)}
        series={[{ label: "Copied", colour: 3, values: ratesOf(points) }]}
        format={rows}
        height={120}
      />
    </Box>
  );
}
