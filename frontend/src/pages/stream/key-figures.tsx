import { SimpleGrid } from "@mantine/core";
import type { Stream } from "@/api/types";
import { byteRate, rate } from "@/lib/format";
import { isStanding } from "@/lib/lag";
import { exactSum, oldestParked, parkedOf, parkedSum } from "@/lib/sums";
import { LagFigures } from "@/ui/lag-figures";
import { LatencyMetric } from "@/ui/latency-metric";
import { Metric } from "@/ui/quantity";
import classes from "./stream-now.module.css";

/** Rates, latency, errors and lag. Of several destinations the rates are the source's. */
export function KeyFigures({ stream }: { stream: Stream }) {
  const several = stream.destinations.length > 1;
  return (
    <SimpleGrid cols={{ base: 2, sm: 3, lg: 6 }} spacing={0} className={classes.figures}>
      <Metric
        metric={several ? "sourceRate" : "lcrRate"}
        size="lg"
        quantity={rate(stream.lcrs_per_second, "LCR")}
      />
      <Metric metric="transactionRate" size="lg" quantity={rate(stream.transactions_per_second, "txn")} />
      <Metric metric="byteRate" size="lg" quantity={byteRate(stream.bytes_per_second)} />
      <LatencyMetric latency={stream.latency} of="p50_ms" size="lg" />
      <LatencyMetric latency={stream.latency} of="p99_ms" size="lg" />
      <Metric
        metric="errors"
        size="lg"
        quantity={parkedOf(stream)}
        note={oldestParked(stream.destinations)}
      />
      <LagFigures
        lag={stream.lag}
        parked={exactSum(parkedSum(stream))}
        slot={stream.slot}
        standing={isStanding(stream)}
        size="lg"
      />
    </SimpleGrid>
  );
}
