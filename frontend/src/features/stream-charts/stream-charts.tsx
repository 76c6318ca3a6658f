import { SimpleGrid } from "@mantine/core";
import { useMemo } from "react";
import type { Sample, Stream } from "@/api/types";
import { bytes, latencyMs, rate } from "@/lib/format";
import { TimeChart } from "@/ui/time-chart";
import { chartSeries } from "./series";

const lcrs = (value: number | null | undefined) => rate(value, "LCR");

interface StreamChartsProps {
  samples: Sample[];
  minutes: number;
  destinations: Stream["destinations"];
}

export function StreamCharts({ samples, minutes, destinations }: StreamChartsProps) {
  const series = useMemo(
    () =>
      chartSeries(
        samples,
        minutes,
        destinations.map(({ id, database }) => ({ id, name: database.name })),
      ),
    [samples, minutes, destinations],
  );
  const several = destinations.length > 1;
  return (
    <SimpleGrid cols={{ base: 1, md: 3 }} spacing="sm">
      <TimeChart
        title={several ? "Rate by destination" : "Rate by component"}
        times={series.times}
        series={series.rates}
        format={lcrs}
        windowSeconds={minutes * 60}
      />
      <TimeChart
        title={several ? "Latency, source to slowest destination" : "Latency, source to destination"}
        times={series.times}
        series={series.latencies}
        format={latencyMs}
        windowSeconds={minutes * 60}
      />
      <TimeChart
        title={several ? "Replication lag, the longest" : "Replication lag"}
        times={series.times}
        series={series.lag}
        format={bytes}
        windowSeconds={minutes * 60}
        binary
      />
    </SimpleGrid>
  );
}
