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
  { key: "name", header: "Component", cell: componentName, sortBy: (component) => componentName(component) },
  {
    key: "state",
    header: "State",
    cell: (component) => <StateBadge state={component.state} compact />,
    sortBy: (component) => component.state,
  },
  {
    key: "lcrs",
    header: "LCRs",
    definition: metrics.componentLcrRate.definition,
    align: "right",
    sortBy: (component) => component.lcrs_per_second,
    cell: (component) => (
      <Quantity quantity={rate(counts(component, "lcrs") ? component.lcrs_per_second : null, "LCR")} />
    ),
  },
  {
    key: "transactions",
    header: "Transactions",
    definition: metrics.transactionRate.definition,
    align: "right",
    sortBy: (component) => component.transactions_per_second,
    cell: (component) => <Quantity quantity={rate(component.transactions_per_second, "txn")} />,
  },
  {
    key: "bytes",
    header: "Bytes",
    definition: metrics.byteRate.definition,
    align: "right",
    sortBy: (component) => component.bytes_per_second,
    cell: (component) => <Quantity quantity={byteRate(component.bytes_per_second)} />,
  },
  {
    key: "latency",
    header: "Latency",
    definition: metrics.componentLatency.definition,
    align: "right",
    sortBy: (component) => component.gauges.latency_us,
    cell: (component) => <Quantity quantity={latency(component.gauges.latency_us)} />,
  },
  {
    key: "spill",
    header: "Spilled",
    definition: metrics.spill.definition,
    align: "right",
    sortBy: (component) => component.counters.spilled_lcrs,
    cell: (component) => <Quantity quantity={compactCount(component.counters.spilled_lcrs, "LCR")} />,
  },
  {
    key: "spill_rate",
    header: "Spill rate",
    definition: metrics.spillRate.definition,
    align: "right",
    sortBy: (component) => component.counter_rates?.spilled_lcrs,
    cell: (component) => <Quantity quantity={rate(component.counter_rates?.spilled_lcrs, "LCR")} />,
  },
  {
    key: "spill_bytes",
    header: "On disk",
    definition: metrics.spillBytes.definition,
    align: "right",
    sortBy: (component) => component.gauges.spill_bytes,
    cell: (component) => <Quantity quantity={bytes(component.gauges.spill_bytes)} />,
  },
  {
    key: "disk_age",
    header: metrics.diskAge.label,
    definition: metrics.diskAge.definition,
    align: "right",
    sortBy: (component) => component.gauges.spill_age_us,
    cell: (component) => <Quantity quantity={latency(component.gauges.spill_age_us)} />,
  },
  {
    key: "deadlocks",
    header: metrics.deadlocks.label,
    definition: metrics.deadlocks.definition,
    align: "right",
    sortBy: (component) => component.counters.deadlocks,
    cell: (component) => <Quantity quantity={compactCount(component.counters.deadlocks)} />,
  },
  {
    key: "time",
    header: "Time",
    definition: "Where its time went since the last sample.",
    width: 110,
    cell: (component) =>
      component.type === "QUEUE" ? (
        "–"
      ) : (
        <TimeBar
          shares={component.time_percent ? { ...component.time_percent } : null}
          label={`${componentName(component)}, time`}
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
        sortBy: (component) => share(component, key),
        cell: (component) => {
          const value = share(component, key);
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
    cell: (component) =>
      component.destination_id ? (destinations[component.destination_id] ?? component.destination_id) : "all",
    sortBy: (component) => component.destination_id ?? "",
  };
  const shownColumns = several ? [...columns.slice(0, 1), owner, ...columns.slice(1)] : columns;
  return (
    <DataTable
      label="Components"
      columns={shownColumns}
      rows={sample.components}
      rowKey={(component) => component.id}
    />
  );
}
