import { Box, Text, Tooltip } from "@mantine/core";
import type { Quantity as Value } from "@/lib/format";
import { type MetricName, metrics } from "@/lib/metrics";
import classes from "./quantity.module.css";

/** A number with its unit set smaller, and what it means on hover or focus. */
export function Quantity({
  quantity,
  metric,
  size = "sm",
}: {
  quantity: Value;
  metric?: MetricName;
  size?: "sm" | "lg";
}) {
  const text = (
    <span className={classes.quantity} data-size={size}>
      <span className={classes.value}>{quantity.value}</span>
      {quantity.unit && <span className={classes.unit}>{`\u00a0${quantity.unit}`}</span>}
    </span>
  );
  if (!metric) return text;
  return (
    <Tooltip label={metrics[metric].definition}>
      <span>{text}</span>
    </Tooltip>
  );
}

/** A labelled number; the label carries the definition and can be reached by keyboard. */
export function Metric({
  metric,
  label,
  quantity,
  note,
  size = "sm",
}: {
  metric: MetricName;
  label?: string;
  quantity: Value;
  /** A remark on the number: "12 s ago". */
  note?: string | null;
  size?: "sm" | "lg";
}) {
  return (
    <Box className={classes.metric} data-size={size}>
      <MetricLabel metric={metric} label={label} />
      <Quantity quantity={quantity} size={size} />
      {note && <span className={classes.note}>{note}</span>}
    </Box>
  );
}

export function MetricLabel({ metric, label }: { metric: MetricName; label?: string }) {
  return (
    <Tooltip label={metrics[metric].definition}>
      <Text component="button" type="button" className={classes.label}>
        {label ?? metrics[metric].label}
      </Text>
    </Tooltip>
  );
}
