// How alerts read: severities and states, thresholds in their units.
import type { Alert, AlertChannel, AlertDelivery, AlertRule, AlertRuleValues } from "@/api/types";
import { asText, bytes, duration, exact } from "@/lib/format";
import type { StateInWords } from "@/lib/states";

export function severityInWords(severity: Alert["severity"]): StateInWords {
  return severity === "critical"
    ? { label: "Critical", tone: "bad", definition: "Replication has stopped, or data will soon be missing." }
    : { label: "Warning", tone: "warning", definition: "Needs attention, but not this minute." };
}

/** How one that is over ended. */
export function endInWords({ resolution }: Alert): StateInWords {
  return resolution === "cleared"
    ? { label: "Recovered", tone: "good", definition: "The condition ended." }
    : {
        label: "Not applicable",
        tone: "quiet",
        definition: "Its subject was stopped or removed, or the alert rule was switched off.",
      };
}

export function deliveryInWords({ state, tries, error }: AlertDelivery): StateInWords {
  if (state === "delivered")
    return { label: "Delivered", tone: "good", definition: "The receiver accepted it." };
  if (state === "failed")
    return { label: "Failed", tone: "bad", definition: error?.message ?? "It will not be tried again." };
  return tries === 0
    ? { label: "Waiting", tone: "busy", definition: "It is sent in the next round." }
    : { label: "Trying again", tone: "warning", definition: error?.message ?? "" };
}

/** A threshold's value with its unit. */
export function inUnit(value: number, unit: string): string {
  if (unit === "bytes") return asText(bytes(value));
  if (unit === "seconds") return asText(duration(value));
  if (unit === "percent") return `${exact(value)}\u00a0%`;
  return `${exact(value)}\u00a0${unit}`;
}

export function thresholdsInWords(rule: AlertRule, values: AlertRuleValues): string {
  return rule.thresholds
    .map(
      ({ name, label, unit, default: fallback }) =>
        `${label} ${inUnit(values.thresholds[name] ?? fallback, unit)}`,
    )
    .join("; ");
}

/** Where a channel's notices go. */
export function targetInWords({ kind, settings }: AlertChannel): string {
  if (kind === "webhook") return String(settings.url ?? "");
  if (kind === "email") return ((settings.recipients as string[] | undefined) ?? []).join(", ");
  return "the collector's log";
}

const MIB = 1 << 20;

/** Bytes are edited in MiB: nobody types twelve digits. */
export function toEdited(value: number, unit: string): number {
  return unit === "bytes" ? value / MIB : value;
}

export function fromEdited(value: number, unit: string): number {
  return unit === "bytes" ? Math.max(1, Math.round(value * MIB)) : value;
}

export function editedUnit(unit: string): string {
  return { bytes: "MiB", seconds: "s", percent: "%" }[unit] ?? unit;
}
