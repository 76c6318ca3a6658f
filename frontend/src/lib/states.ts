// One mapping from what the engine says to what a person reads: label, tone (colour and icon follow from it, in
// ui/tone.tsx) and the definition shown on hover.

import type { components } from "@/api/generated/schema";
import { listed } from "./sentences";

type Schemas = components["schemas"];
export type ObservedStatus = Schemas["ObservedStatus"];
export type StreamPhase = Schemas["StreamPhase"];
export type HealthLevel = Schemas["HealthLevel"];
export type ShownState = Schemas["ShownState"];

export type Tone = "good" | "busy" | "quiet" | "warning" | "bad";

export interface StateInWords {
  label: string;
  tone: Tone;
  definition: string;
}

type Words = [tone: Tone, definition: string];

/** States that only components have (engine/contract/component-states.json); the API passes them on. */
const ofComponents: Record<string, Words> = {
  "CAPTURING CHANGES": ["good", "Changes arrive from the source and are turned into LCRs."],
  "DICTIONARY INITIALIZATION": ["busy", "Reads the WAL up to the position with which the stream begins."],
  "MINING AGAIN": ["busy", "Reads kept WAL again, for a destination that was restored to an earlier state."],
  "RECEIVING WAL": ["good", "The source's WAL arrives and is staged on the engine's disk."],
  "FETCHING ARCHIVED WAL": [
    "busy",
    "WAL that the source no longer has, or cannot send, is fetched from the archive.",
  ],
  "WAITING FOR SOURCE OR ARCHIVE": [
    "warning",
    "Neither the source nor the archive has given what is next; both are tried again.",
  ],
  "PAUSED FOR STAGING SPACE": [
    "warning",
    "The staged WAL has reached its limit; the source keeps what follows, unless an archive has it.",
  ],
  "WAITING FOR WAL": ["quiet", "Everything that the source wrote is captured; waiting for more."],
  "PAUSED FOR FLOW CONTROL": ["warning", "Held back because a component downstream is slower."],
  "SHUTTING DOWN": ["busy", "Stopping; hands on what is in memory first."],
  "SHUTTING DOWN CLEANLY": ["busy", "Stopping; finishes transactions that have begun first."],
  ABORTING: ["bad", "Stopping because of an error."],
  NORMAL: ["good", "LCRs enter and leave the queue freely."],
  "IN FLOW CONTROL: TOO MANY UNBROWSED MESSAGES": [
    "warning",
    "The queue is full: it holds as many LCRs as it may, because a component after it takes them more slowly than they come. The component that fills it waits. Nothing is lost. Look at the component that the path marks as the bottleneck; the advisor names the cause and its cure.",
  ],
  "IN FLOW CONTROL: INSUFFICIENT MEMORY": [
    "warning",
    "The queue is full: its memory is used up, because a component after it takes LCRs more slowly than they come. The component that fills it waits. Nothing is lost. Look at the component that the path marks as the bottleneck; the advisor names the cause and its cure.",
  ],
  IDLE: ["quiet", "Nothing to do: waiting for the component upstream."],
  "DEQUEUE MESSAGES": ["good", "Takes LCRs from the queue and puts transactions together."],
  SPILLING: ["warning", "Moves LCRs of large transactions from memory to disk."],
  APPLYING: ["good", "Transactions are handed to the appliers."],
  "ROLLBACK TRANSACTION": ["bad", "Undoes a transaction that failed."],
  "INITIALIZING PROPAGATION RECEIVER": ["busy", "Connected; agrees with the other end on where to begin."],
  CONNECTING: ["busy", "Connects to the engine at the other end."],
  "SENDING LCRS": ["good", "Sends LCRs to the engine at the other end."],
  "RECEIVING LCRS": ["good", "Receives LCRs from the engine that captures."],
  "WAITING FOR LCRS": ["quiet", "Everything received is handed on; waiting for more."],
  "WAITING ON EMPTY QUEUE": ["quiet", "Everything in the queue is sent; waiting for more."],
  "WAITING FOR SENDER": ["warning", "The engine that captures is not connected."],
  "WAITING FOR NETWORK": ["warning", "There is more to send than the network carries."],
  "WAITING FOR ACKNOWLEDGEMENT": ["warning", "As much is in flight as allowed; waiting for the other end."],
};

/** Every state that the API's document names, and a database's. */
type ApiState =
  | ObservedStatus
  | StreamPhase
  | Schemas["TableState"]
  | Schemas["EngineState"]
  | Schemas["BacklogState"]
  | Schemas["TransactionState"]
  | Schemas["MarkerState"]
  | Schemas["ExecutionState"]
  | Uppercase<Schemas["OperationState"]>
  | Schemas["ShownState"]
  | "UNREADABLE";

const ofApi: Record<ApiState, Words> = {
  // the backlog of a destination
  "IN MEMORY": ["good", "Changes that the destination has not taken yet are in the queue."],
  "ON DISK": [
    "warning",
    "The destination is away or slow: changes that it has not taken are on the engine's disk.",
  ],
  FULL: ["bad", "The backlog has reached its limit: the source now keeps WAL for this destination."],
  // transactions and markers on their way
  OPEN: ["busy", "Its changes are arriving; neither commit nor abort has arrived yet."],
  "WAIT DEPENDENCY": ["warning", "Waits for a transaction that touches the same rows."],
  "WAIT RETRY": ["warning", "Failed. A policy for its error has it retried after a while."],
  READY: ["quiet", "Complete. It waits for a free applier, or for its group to fill."],
  "EXECUTE TRANSACTION": ["good", "Executes a transaction at the destination."],
  "WAIT COMMIT": ["quiet", "Waits for its turn to commit."],
  PLACED: ["busy", "Committed at the source; capture has not read it yet."],
  CAPTURED: ["busy", "Capture has read it; it is on its way to the destinations."],
  ARRIVED: ["good", "Everything before it is committed at every destination."],
  // status of streams and operations
  ENABLED: ["good", "Switched on."],
  DISABLED: ["quiet", "Switched off. The source keeps the WAL that is still needed."],
  ABORTED: ["bad", "Stopped by an error that does not go away by itself."],
  DROPPED: ["quiet", "Removed, with its objects at source and destination."],
  UNKNOWN: ["quiet", "It has not reported yet, or its engine does not answer."],
  // engines
  ONLINE: ["good", "Answers the control plane."],
  UNREACHABLE: ["bad", "Does not answer. Its streams may still be running, but their figures are missing."],
  REFUSED: ["bad", "Answers, but refuses the control plane's token or its version of the API."],
  // of a database, as the control plane reads it
  UNREADABLE: ["warning", "The control plane could not read it when it last tried."],
  // of a destination
  PAUSED: ["quiet", "Switched off on purpose: nothing is applied here until it is resumed."],
  PARKING: ["bad", "Nothing is applied: every transaction that arrives is parked in the error queue."],
  STALLED: [
    "warning",
    "Changes wait for it, but nothing has been applied for 15 s or longer; or another destination's full backlog holds up capture.",
  ],
  // phases of a stream
  INITIALIZING: ["busy", "Opens its connections and looks up where it left off."],
  INSTANTIATING: ["busy", "The initial copy of the tables runs."],
  "CATCHING UP": ["busy", "Changes that gathered during the copy or a stop are being applied."],
  REPLICATING: ["good", "Changes are applied as they arrive."],
  RETRYING: ["warning", "A transient error; the engine tries again by itself."],
  DRAINING: ["busy", "Stopping: the changes in the queue are applied first."],
  DROPPING: ["busy", "Removing the stream's objects at source and destination."],
  STOPPED: ["quiet", "Not running."],
  // tables
  WAITING: ["quiet", "Its copy has not begun."],
  COPYING: ["busy", "Some of the existing rows are copied; the copy goes on while the destination runs."],
  INDEXING: [
    "busy",
    "The rows are there; keys, indexes and foreign keys are being built while the destination runs.",
  ],
  COPIED: ["good", "All existing rows are copied; changes are applied once the destination replicates."],
  // operations
  PENDING: ["quiet", "Not begun."],
  RUNNING: ["busy", "In progress."],
  SUCCEEDED: ["good", "Done."],
  DONE: ["good", "Done."],
  FAILED: ["bad", "Ended with an error."],
};

const states: Record<string, Words | undefined> = { ...ofComponents, ...ofApi };

/** How a stream's changes are captured. */
export function captureInWords(kind: Schemas["CaptureKind"]): string {
  return kind === "wal"
    ? "log mining: the engine stages the source's WAL on its disk and mines it there"
    : "logical decoding at the source";
}

/** How capture and apply of a stream stand to each other. */
export function modeInWords(mode: "combined" | "propagation" | "fan-out"): string {
  if (mode === "fan-out") return "Fan-out: one capture and one queue for several destinations";
  return mode === "combined"
    ? "Combined capture and apply: one engine does both"
    : "Propagation: one engine captures and sends, another receives and applies";
}

/** "PAUSED FOR FLOW CONTROL" → "Paused for flow control". */
export function sentenceCase(text: string): string {
  const lower = text.replaceAll("_", " ").toLowerCase();
  return (lower.charAt(0).toUpperCase() + lower.slice(1))
    .replace(/\bwal\b/i, "WAL")
    .replace(/\blcr(s?)\b/i, "LCR$1");
}

export function stateInWords(state: string | null | undefined): StateInWords {
  if (!state) return { label: "Unknown", tone: "quiet", definition: "It has not reported yet." };
  const entry = states[state] ?? states[state.toUpperCase()];
  if (entry) return { label: sentenceCase(state), tone: entry[0], definition: entry[1] };
  return {
    label: sentenceCase(state),
    tone: "quiet",
    definition: "A state that this console does not know.",
  };
}

interface Backlogged {
  status: ObservedStatus;
  backlog: { state: Schemas["BacklogState"] } | null;
  database: { name: string };
}

const isFull = ({ status, backlog }: Backlogged) => status !== "DROPPED" && backlog?.state === "FULL";

/** A full backlog holds up capture, and with it all destinations. Null: none is full. */
export function waitsForRoom(destinations: readonly Backlogged[]): StateInWords | null {
  const full = listed(destinations.filter(isFull).map(({ database }) => database.name));
  if (!full) return null;
  return {
    label: `Waits for room at ${full}`,
    tone: "bad",
    definition: `The backlog of ${full} is full: nothing more is captured, for any destination, until there is room.`,
  };
}

/** States that a full backlog explains. */
const HELD_UP = new Set<string>(["REPLICATING", "CATCHING UP", "STALLED"]);

/** The work of a stream: one that is held up neither replicates nor catches up, whatever its phase. */
export function streamInWords(stream: {
  state: ShownState;
  destinations: readonly Backlogged[];
}): StateInWords {
  const isHeldUp = HELD_UP.has(stream.state) || stream.state === "RETRYING";
  return (isHeldUp && waitsForRoom(stream.destinations)) || stateInWords(stream.state);
}

/** One whose own backlog is full applies what is in it; the others get nothing more. */
export function destinationInWords(
  destination: Backlogged & { state: ShownState },
  ofStream: readonly Backlogged[],
): StateInWords {
  const isHeldUp = HELD_UP.has(destination.state) && !isFull(destination);
  return (isHeldUp && waitsForRoom(ofStream)) || stateInWords(destination.state);
}

/**
 * The reason of a stream's health where it says more than the badge beside it; null when it only repeats it, as
 * "Replicating." beside Replicating.
 */
export function reasonBeside(reason: string, state: string): string | null {
  return reason.replace(/\.$/, "").toLowerCase() === sentenceCase(state).toLowerCase() ? null : reason;
}

type Ill = "bad" | "warning";

const troubles: Record<Schemas["TroubleKind"], [tone: Ill, definition: string]> = {
  MISSING: ["bad", "The source has no such table."],
  DROPPED: ["bad", "It was dropped at the source."],
  REPLACED: ["bad", "It was dropped at the source, and another table has its name."],
  RENAMED: ["warning", "It has another name at the source now."],
  UNPUBLISHED: ["bad", "The source does not publish its changes any more."],
  "PARTITIONS CHANGED": ["bad", "Partitions were attached to it or detached from it at the source."],
  UNIDENTIFIED: ["bad", "It has no replica identity: the source refuses its updates and deletes."],
};

/** The trouble of a stream's table at the source. */
export function troubleInWords(kind: Schemas["TroubleKind"]): StateInWords & { tone: Ill } {
  const [tone, definition] = troubles[kind];
  return { label: sentenceCase(kind), tone, definition };
}

const healths: Record<HealthLevel, [label: string, tone: Tone, definition: string]> = {
  ok: ["Healthy", "good", "Runs and keeps up."],
  warning: ["Attention", "warning", "Runs, but something needs attention."],
  error: ["Failed", "bad", "Does not replicate until its error is cured."],
  stopped: ["Stopped", "quiet", "Switched off on purpose."],
  unknown: ["Unknown", "quiet", "The engine has not reported."],
};

/**
 * `status` is the engine's: what it has been asked to stop stops until the engine says that it has. `state` is the
 * stream's: one whose destinations are all paused is paused.
 */
export function healthInWords(level: HealthLevel, status?: ObservedStatus, state?: ShownState): StateInWords {
  if (level === "stopped" && state === "PAUSED") return stateInWords(state);
  if (level === "stopped" && status === "ENABLED")
    return { label: "Stopping", tone: "busy", definition: "Applies what its queue holds, then stops." };
  const [label, tone, definition] = healths[level];
  return { label, tone, definition };
}
