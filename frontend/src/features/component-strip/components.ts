// The components on the strip, in their places, and the content of each one's card.
import type { ComponentSample } from "@/api/types";
import { type KnownSum, knownSum } from "@/lib/sums";

/** The id of a destination's component begins with the destination's id and a colon. */
const isApplyQueue = ({ id }: ComponentSample) => id.endsWith(":apply-queue");
const isBacklog = ({ sub_component }: ComponentSample) => sub_component === "QUEUE SPILL";

export interface StripComponents {
  capture: ComponentSample | null;
  /** Parts of a capture that mines. */
  shipment: ComponentSample | null;
  builder: ComponentSample | null;
  queue: ComponentSample | null;
  sender: ComponentSample | null;
  receiver: ComponentSample | null;
  /** Behind the receiver, when another engine captures. */
  applyQueue: ComponentSample | null;
  reader: ComponentSample | null;
  coordinator: ComponentSample | null;
  appliers: ComponentSample[];
}

export function arrange(components: ComponentSample[]): StripComponents {
  const apply = (sub: string) =>
    components.find((component) => component.type === "APPLY" && component.sub_component === sub) ?? null;
  const capture = (sub: string | null) =>
    components.find((component) => component.type === "CAPTURE" && component.sub_component === sub) ?? null;
  return {
    capture: capture(null),
    shipment: capture("WAL SHIPMENT"),
    builder: capture("LOGMINER BUILDER"),
    queue:
      components.find(
        (component) => component.type === "QUEUE" && !isApplyQueue(component) && !isBacklog(component),
      ) ?? null,
    sender: components.find((component) => component.type === "PROPAGATION SENDER") ?? null,
    receiver: components.find((component) => component.type === "PROPAGATION RECEIVER") ?? null,
    applyQueue: components.find(isApplyQueue) ?? null,
    reader: apply("APPLY READER"),
    coordinator: apply("APPLY COORDINATOR"),
    appliers: components
      .filter((component) => component.sub_component === "APPLY SERVER")
      .sort((a, b) => (a.server ?? 0) - (b.server ?? 0)),
  };
}

/** Those of one destination. */
export function ofDestination(components: ComponentSample[], destinationId: string): ComponentSample[] {
  return components.filter((component) => component.destination_id === destinationId);
}

/** Batches come from thalweg_output only; null until anything came. */
export function outputPlugin({ counters }: ComponentSample): "thalweg_output" | "pgoutput" | null {
  if ((counters.batches ?? 0) > 0) return "thalweg_output";
  return (counters.lcrs ?? 0) > 0 ? "pgoutput" : null;
}

const names: Partial<Record<ComponentSample["type"], string>> = {
  CAPTURE: "Capture",
  QUEUE: "Queue",
  "PROPAGATION SENDER": "Sender",
  "PROPAGATION RECEIVER": "Receiver",
};

export function componentName(component: ComponentSample): string {
  switch (component.sub_component) {
    case "APPLY READER":
      return "Apply reader";
    case "APPLY COORDINATOR":
      return "Coordinator";
    case "APPLY SERVER":
      return `Applier ${component.server ?? "?"}`;
    case "WAL SHIPMENT":
      return "WAL shipment";
    case "LOGMINER BUILDER":
      return "Builder";
    default:
      if (isBacklog(component)) return "Backlog";
      if (isApplyQueue(component)) return "Apply queue";
      return names[component.type] ?? component.name;
  }
}

export function sumRate(
  components: ComponentSample[],
  field: "lcrs_per_second" | "transactions_per_second" | "bytes_per_second",
): KnownSum {
  return knownSum(components.map((component) => component[field]));
}

/** True when the component counts such a thing at all: a coordinator handles transactions, not LCRs. */
export function counts(component: ComponentSample, counter: "lcrs" | "transactions" | "bytes"): boolean {
  return counter in component.counters;
}
