import { SimpleGrid } from "@mantine/core";
import { useMemo } from "react";
import type { Sample } from "@/api/types";
import { bytes, latencyMs, rate } from "@/lib/format";
import { TimeChart } from "@/ui/time-chart";
import { chartSeries } from "./series";

const lcrs = (value: number | null | undefined) => rate(value, "LCR");

export function StreamCharts({ samples, minutes }: { samples: Sample[]; minutes: number }) {
  const series = useMemo(() => chartSeries(samples, minutes), [samples, minutes]);
  return (
    <SimpleGrid cols={{ base: 1, md: 3 }} spacing="sm">
      <TimeChart
        title="Rate by component"
        times={series.times}
        series={series.rates}
        format={lcrs}
        windowSeconds={minutes * 60}
      />
      <TimeChart
        title="Latency, source to destination"
        times={series.times}
        series={series.latencies}
        format={latencyMs}
        windowSeconds={minutes * 60}
      />
      <TimeChart
        title="Backlog"
        times={series.times}
        series={series.backlog}
        format={bytes}
        windowSeconds={minutes * 60}
        binary
      />
    </SimpleGrid>
  );
}
