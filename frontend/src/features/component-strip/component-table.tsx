import type { ComponentSample, Sample } from "@/api/types";
import { activities } from "@/lib/activities";
import { byteRate, bytes, compactCount, latency, percent, rate } from "@/lib/format";
import { metrics } from "@/lib/metrics";
import { type Column, DataTable } from "@/ui/data-table";
import { Quantity } from "@/ui/quantity";
import { TimeBar } from "@/ui/time-bar";
import { StateBadge } from "@/ui/tone";
import { componentName, counts } from "./components";

const shown = ["busy", "execute", "commit", "flow_control", "idle"];

function share(component: ComponentSample, key: string): number | null {
  if (!component.time_percent) return null;
  return (component.time_percent as Record<string, number>)[key] ?? null;
}

const columns: Column<ComponentSample>[] = [
  { key: "name", header: "Component", cell: componentName, sortBy: (one) => componentName(one) },
  {
    key: "state",
    header: "State",
    cell: (one) => <StateBadge state={one.state} compact />,
    sortBy: (one) => one.state,
  },
  {
    key: "lcrs",
    header: "LCRs",
    definition: metrics.componentLcrRate.definition,
    align: "right",
    sortBy: (one) => one.lcrs_per_second,
    cell: (one) => <Quantity quantity={rate(counts(one, "lcrs") ? one.lcrs_per_second : null, "LCR")} />,
  },
  {
    key: "transactions",
    header: "Transactions",
    definition: metrics.transactionRate.definition,
    align: "right",
    sortBy: (one) => one.transactions_per_second,
    cell: (one) => <Quantity quantity={rate(one.transactions_per_second, "txn")} />,
  },
  {
    key: "bytes",
    header: "Bytes",
    definition: metrics.byteRate.definition,
    align: "right",
    sortBy: (one) => one.bytes_per_second,
    cell: (one) => <Quantity quantity={byteRate(one.bytes_per_second)} />,
  },
  {
    key: "latency",
    header: "Latency",
    definition: metrics.componentLatency.definition,
    align: "right",
    sortBy: (one) => one.gauges.latency_us,
    cell: (one) => <Quantity quantity={latency(one.gauges.latency_us)} />,
  },
  {
    key: "spill",
    header: "Spilled",
    definition: metrics.spill.definition,
    align: "right",
    sortBy: (one) => one.counters.spilled_lcrs,
    cell: (one) => <Quantity quantity={compactCount(one.counters.spilled_lcrs, "LCR")} />,
  },
  {
    key: "spill_rate",
    header: "Spill rate",
    definition: metrics.spillRate.definition,
    align: "right",
    sortBy: (one) => one.counter_rates?.spilled_lcrs,
    cell: (one) => <Quantity quantity={rate(one.counter_rates?.spilled_lcrs, "LCR")} />,
  },
  {
    key: "spill_bytes",
    header: "On disk",
    definition: metrics.spillBytes.definition,
    align: "right",
    sortBy: (one) => one.gauges.spill_bytes,
    cell: (one) => <Quantity quantity={bytes(one.gauges.spill_bytes)} />,
  },
  {
    key: "disk_age",
    header: metrics.diskAge.label,
    definition: metrics.diskAge.definition,
    align: "right",
    sortBy: (one) => one.gauges.spill_age_us,
    cell: (one) => <Quantity quantity={latency(one.gauges.spill_age_us)} />,
  },
  {
    key: "deadlocks",
    header: metrics.deadlocks.label,
    definition: metrics.deadlocks.definition,
    align: "right",
    sortBy: (one) => one.counters.deadlocks,
    cell: (one) => <Quantity quantity={compactCount(one.counters.deadlocks)} />,
  },
  {
    key: "time",
    header: "Time",
    definition: "Where its time went since the last sample.",
    width: 110,
    cell: (one) =>
      one.type === "QUEUE" ? (
        "–"
      ) : (
        <TimeBar
          shares={one.time_percent ? { ...one.time_percent } : null}
          label={`${componentName(one)}, time`}
        />
      ),
  },
  ...activities
    .filter(({ key }) => shown.includes(key))
    .map(
      ({ key, label, definition }): Column<ComponentSample> => ({
        key,
        header: label,
        definition,
        align: "right",
        sortBy: (one) => share(one, key),
        cell: (one) => {
          const value = share(one, key);
          return <Quantity quantity={percent(value === null ? null : value / 100)} />;
        },
      }),
    ),
];

interface ComponentTableProps {
  sample: Sample;
  /** Names by id: with several destinations, each component says whose it is. */
  destinations?: Record<string, string>;
}

/** Every component with every number, for those who prefer rows to the strip. */
export function ComponentTable({ sample, destinations = {} }: ComponentTableProps) {
  const several = Object.keys(destinations).length > 1;
  const owner: Column<ComponentSample> = {
    key: "destination",
    header: "Destination",
    cell: (one) => (one.destination_id ? (destinations[one.destination_id] ?? one.destination_id) : "all"),
    sortBy: (one) => one.destination_id ?? "",
  };
  const shownColumns = several ? [...columns.slice(0, 1), owner, ...columns.slice(1)] : columns;
  return (
    <DataTable label="Components" columns={shownColumns} rows={sample.components} rowKey={(one) => one.id} />
  );
}
