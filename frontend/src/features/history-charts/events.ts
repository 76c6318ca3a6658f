// Events of a stream while its charts were drawn: a mark in each of them, and a line in a list.
import type { Alert, AppliedCure, AuditEntry, Engine, Outage } from "@/api/types";
import { cureStateInWords } from "@/lib/advisor";
import { asText, duration, formatTime } from "@/lib/format";
import type { Tone } from "@/lib/states";

export interface HistoryEvent {
  key: string;
  /** Milliseconds since the epoch. */
  at: number;
  /** When it was over; absent of what has no length. Infinite while it lasts. */
  until?: number;
  tone: Tone;
  what: "Restart" | "Change" | "Alert" | "Cure" | "Outage";
  text: string;
}

export interface EventSources {
  streamId: string;
  engines: readonly Engine[];
  /** Of the stream's engines. */
  engineIds: readonly string[];
  audit: readonly AuditEntry[];
  alerts: readonly Alert[];
  cures: readonly AppliedCure[];
}

/** The oldest first. */
export function eventsOf(sources: EventSources): HistoryEvent[] {
  return sorted([...restarts(sources), ...changes(sources), ...alertsOf(sources), ...curesOf(sources)]);
}

/** The events within a range and those that reach into it, the oldest first. */
export function eventsBetween(events: HistoryEvent[], since: number, until: number): HistoryEvent[] {
  return sorted(events.filter(({ at, until: end }) => at <= until && (end ?? at) >= since));
}

function sorted(events: HistoryEvent[]): HistoryEvent[] {
  return events.sort((a, b) => a.at - b.at);
}

const STATES: Record<Outage["state"], string> = {
  RETRYING: "did not work",
  ABORTED: "had stopped with an error",
  UNREACHABLE: "was unreachable",
  REFUSED: "refused the control plane",
};

/** Times in which the stream, a destination or an engine did not work: spans in the charts. */
export function outageEvents(outages: readonly Outage[]): HistoryEvent[] {
  return outages.map(({ of, id, name, state, reason, since, until }) => {
    const [begin, end] = [Date.parse(since), until ? Date.parse(until) : Number.POSITIVE_INFINITY];
    const lasted = until
      ? `for ${asText(duration((end - begin) / 1000))}, until ${formatTime(until)}`
      : "since then";
    const subject = of === "stream" ? "The stream" : `${of === "engine" ? "Engine" : "Destination"} ${name}`;
    return {
      key: `outage ${id} ${since}`,
      at: begin,
      until: end,
      tone: of === "engine" ? "warning" : "bad",
      what: "Outage",
      text: `${subject} ${STATES[state]} ${lasted}. ${reason}`,
    };
  });
}

function restarts({ engines, engineIds }: EventSources): HistoryEvent[] {
  return engines.flatMap(({ id, name, started_at }) =>
    engineIds.includes(id) && started_at
      ? [
          {
            key: `engine ${id}`,
            at: Date.parse(started_at),
            tone: "quiet" as const,
            what: "Restart" as const,
            text: `Engine ${name} started`,
          },
        ]
      : [],
  );
}

const RESTARTS = ["streams_start", "streams_stop", "streams_retry"];
/** Looking at something is in the audit log, and no event of the stream. */
const LOOKS = ["stream_errors_get"];

function changes({ audit, streamId }: EventSources): HistoryEvent[] {
  return audit
    .filter(({ target_id, action }) => target_id === streamId && !LOOKS.includes(action))
    .map((entry) => ({
      key: `audit ${entry.id}`,
      at: Date.parse(entry.at),
      tone: "busy",
      what: RESTARTS.includes(entry.action) ? "Restart" : "Change",
      text: `${entry.sentence} by ${entry.actor_name}`,
    }));
}

function alertsOf({ alerts, streamId }: EventSources): HistoryEvent[] {
  return alerts.flatMap(({ id, stream_id, fired_at, resolved_at, title, severity }) => {
    if (stream_id !== streamId || !fired_at) return [];
    const until = resolved_at ? `, until ${formatTime(resolved_at)}` : "";
    const tone = severity === "critical" ? "bad" : "warning";
    return [{ key: `alert ${id}`, at: Date.parse(fired_at), tone, what: "Alert", text: `${title}${until}` }];
  });
}

function curesOf({ cures }: EventSources): HistoryEvent[] {
  return cures.map(({ id, created_at, finding, state }) => ({
    key: `cure ${id}`,
    at: Date.parse(created_at),
    tone: "good",
    what: "Cure",
    text: `${finding.title}: ${cureStateInWords(state).label.toLowerCase()}`,
  }));
}
