// The advisor's vocabulary in words that a person reads; the API's own names stay in the tables.
import type { components } from "@/api/generated/schema";
import type { StateInWords, Tone } from "./states";

type Schemas = components["schemas"];
type Verdict = Schemas["Verdict"];
type CureState = Schemas["CureState"];

const verdicts: Record<Verdict, [label: string, tone: Tone, definition: string]> = {
  BOTTLENECK: [
    "Bottleneck",
    "warning",
    "One component limits the path: it is the least idle one that is not held back.",
  ],
  "NO BOTTLENECK": ["No bottleneck", "good", "Every component has time to spare."],
  PARKING: ["Nothing arrives", "bad", "Nothing is applied: transactions are parked in the error queue."],
  "SOURCE IDLE": ["Source idle", "quiet", "The source has no changes for the path."],
  "SOURCE DOWN": ["Source down", "bad", "The source cannot be reached."],
  "DESTINATION DOWN": ["Destination down", "bad", "The destination cannot be reached."],
  "LINK DOWN": ["Link down", "bad", "The engines cannot reach each other."],
  "ENGINE DOWN": ["Engine down", "bad", "The engine does not answer: nothing is known of the path."],
  "ENGINE TROUBLE": ["Engine trouble", "bad", "The engine cannot do its own work; the databases are well."],
  STOPPED: ["Stopped", "quiet", "The stream is switched off."],
  PAUSED: [
    "Paused",
    "quiet",
    "The destination is switched off: nothing is applied there until it is resumed.",
  ],
  ABORTED: ["Aborted", "bad", "The stream was stopped by an error."],
  COPYING: ["Copying", "busy", "The initial copy runs; there is no path to judge yet."],
  STARTING: ["Starting", "busy", "It prepares its work; there is no path to judge yet."],
  WAITING: ["Waits at a server", "bad", "Its start waits behind other sessions at a database."],
  "HELD UP": [
    "Held up",
    "bad",
    "A full backlog or staging, or an archive that lags: nothing more is captured.",
  ],
  UNKNOWN: ["Not known yet", "quiet", "Rates need two samples."],
};

export function verdictInWords(verdict: Verdict): StateInWords {
  const [label, tone, definition] = verdicts[verdict];
  return { label, tone, definition };
}

const subComponents: Record<string, string> = {
  "APPLY READER": "Apply reader",
  "APPLY COORDINATOR": "Coordinator",
  "APPLY SERVER": "Appliers",
};

const types: Record<string, string> = {
  CAPTURE: "Capture",
  QUEUE: "Queue",
  "PROPAGATION SENDER": "Sender",
  "PROPAGATION RECEIVER": "Receiver",
  APPLY: "Apply",
};

/** A component or one of its sub-components: "Appliers", "Apply queue". `id` is the component's. */
export function stageInWords(type: string, subComponent: string | null | undefined, id = ""): string {
  if (type === "QUEUE" && id.includes(":apply-queue")) return "Apply queue";
  return (subComponent && subComponents[subComponent]) || types[type] || type;
}

/** "server-3" is "Applier 3", "warehouse:reader" of several destinations is "Apply reader". */
export function threadInWords(id: string): string {
  const own = id.slice(id.lastIndexOf(":") + 1);
  const applier = /^server-(\d+)$/.exec(own);
  if (applier) return `Applier ${applier[1]}`;
  const names: Record<string, string> = {
    capture: "Capture",
    shipment: "WAL shipment",
    builder: "Builder",
    queue: "Queue",
    backlog: "Backlog",
    sender: "Sender",
    receiver: "Receiver",
    "apply-queue": "Apply queue",
    reader: "Apply reader",
    coordinator: "Coordinator",
  };
  return names[own] ?? id;
}

/** "EVENT: COMMIT ORDER" and "COMMIT ORDER" as the keys of lib/activities. */
export function activityOfEvent(event: string): string {
  const name = event.replace(/^EVENT: /, "");
  return name === "CPU" ? "busy" : name.toLowerCase().replaceAll(" ", "_");
}

const events: Record<string, string> = {
  CPU: "work in the engine itself",
  NETWORK: "the network",
  SOURCE: "the source, which decodes and sends",
  EXECUTE: "statements at the destination",
  COMMIT: "commits at the destination",
  DEPENDENCY: "transactions that wait for one another",
  "COMMIT ORDER": "its turn to commit",
  LOCK: "locks at the destination",
  DISK: "the engine's disk",
};

export function eventInWords(event: string): string {
  return events[event] ?? event.toLowerCase();
}

interface NamedBottleneck {
  verdict: Verdict;
  component_id: string | null;
  component_type: string | null;
  sub_component_type: string | null;
  top_event: string | null;
}

/** "Appliers, on locks at the destination"; the verdict where no component is to blame. */
export function bottleneckInWords(path: NamedBottleneck): string {
  if (!path.component_type) return verdictInWords(path.verdict).label;
  const stage = stageInWords(path.component_type, path.sub_component_type, path.component_id ?? "");
  return path.top_event ? `${stage}, on ${eventInWords(path.top_event)}` : stage;
}

const isVerdict = (text: string): text is Verdict => text in verdicts;

/** A path's limit in a comparison, in words: "APPLY SERVER: LOCK" or a verdict. */
export function limitInWords(limit: string): string {
  const [stage = "", event] = limit.split(": ");
  const known = subComponents[stage] ?? types[stage];
  if (!known) return isVerdict(limit) ? verdicts[limit][0] : limit;
  return event ? `${known}, on ${eventInWords(event)}` : known;
}

const reasons: Record<Schemas["RunReason"], string> = {
  on_demand: "On demand",
  schedule: "Schedule",
  alert: "Alert",
  before_cure: "Before a cure",
  after_cure: "After a cure",
};

export function reasonInWords(reason: Schemas["RunReason"]): string {
  return reasons[reason];
}

const severities: Record<Schemas["FindingSeverity"], [string, Tone, string]> = {
  critical: ["Critical", "bad", "Replication has stopped, or soon will."],
  warning: ["Warning", "warning", "It slows the path down."],
  advice: ["Advice", "busy", "A change would raise throughput or save resources."],
  information: ["Information", "quiet", "Worth knowing; nothing to do."],
};

export function severityInWords(severity: Schemas["FindingSeverity"]): StateInWords {
  const [label, tone, definition] = severities[severity];
  return { label, tone, definition };
}

const cureStates: Record<CureState, [string, Tone, string]> = {
  applying: ["Applying", "busy", "It is being applied at the database."],
  failed: ["Failed", "bad", "It was not applied, and nothing of it remains."],
  undoing: ["Undoing", "busy", "It is being undone at the database."],
  measuring: ["Measuring", "busy", "Applied. A second snapshot will show whether it helped."],
  helped: ["It helped", "good", "The second snapshot is better than the first."],
  no_difference: ["No difference", "quiet", "The second snapshot is about the same as the first."],
  worse: ["Worse", "bad", "The second snapshot is worse than the first: undo it."],
  not_measured: ["Not measured", "warning", "One of the two snapshots is missing or inconclusive."],
  undone: ["Undone", "quiet", "Everything is as it was before."],
};

/** States that end by themselves. */
export const CURE_AT_WORK: CureState[] = ["applying", "measuring", "undoing"];

export function cureStateInWords(state: CureState): StateInWords {
  const [label, tone, definition] = cureStates[state];
  return { label, tone, definition };
}
