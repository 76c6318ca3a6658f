// Alerts and their rules as the API answers them, for tests.
import type { Alert, AlertRule } from "@/api/types";

export const ALERT_AT = "2026-11-21T00:00:05Z";

export function alert(id: string, values: Partial<Alert> = {}): Alert {
  return {
    id,
    rule: "error_queue",
    title: "The error queue is not empty",
    severity: "warning",
    state: "firing",
    subject: { type: "stream", id: "stream01", name: "orders to warehouse" },
    stream_id: "stream01",
    message: "1 transaction is parked in the error queue of orders to warehouse.",
    meaning: "Transactions could not be applied.",
    action: "Open the error queue.",
    page: "/streams/stream01?tab=errors",
    value: 1,
    threshold: 0,
    unit: "transactions",
    evidence: {},
    pending_at: ALERT_AT,
    fired_at: ALERT_AT,
    resolved_at: null,
    resolution: null,
    over_since: null,
    silenced: false,
    acknowledged_at: null,
    acknowledged_by: null,
    note: null,
    run_id: null,
    ...values,
  };
}

const values = {
  enabled: true,
  severity: "warning",
  hold_seconds: 60,
  thresholds: { latency_seconds: 30 },
} as const;
export const rule: AlertRule = {
  id: "latency",
  title: "Latency above its threshold",
  meaning: "Late.",
  action: "Look.",
  subject: "stream",
  per_stream: true,
  thresholds: [
    {
      name: "latency_seconds",
      label: "Latency p99, above",
      unit: "seconds",
      default: 30,
      minimum: 0,
      maximum: 86400,
    },
  ],
  default: values,
  settings: { enabled: null, severity: null, hold_seconds: null, thresholds: {} },
  effective: values,
  streams: [],
  etag: '"0"',
};
