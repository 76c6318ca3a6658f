// What happened to a stream while its charts were drawn: a mark in each of them, and a line in a list.
import type { Alert, AppliedCure, AuditEntry, Engine } from "@/api/types";
import { cureStateInWords } from "@/lib/advisor";
import { formatTime } from "@/lib/format";
import { sentenceCase, type Tone } from "@/lib/states";

export interface HistoryEvent {
  key: string;
  /** Milliseconds since the epoch. */
  at: number;
  tone: Tone;
  what: "Restart" | "Change" | "Alert" | "Cure";
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
  const events = [...restarts(sources), ...changes(sources), ...alertsOf(sources), ...curesOf(sources)];
  return events.sort((a, b) => a.at - b.at);
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

const said: Record<string, string> = {
  streams_start: "Started",
  streams_stop: "Stopped",
  streams_retry: "Tried again",
  streams_create: "Created",
};
const RESTARTS = ["streams_start", "streams_stop", "streams_retry"];

function changes({ audit, streamId }: EventSources): HistoryEvent[] {
  return audit
    .filter(({ target_id }) => target_id === streamId)
    .map((entry) => ({
      key: `audit ${entry.id}`,
      at: Date.parse(entry.at),
      tone: "busy",
      what: RESTARTS.includes(entry.action) ? "Restart" : "Change",
      text: `${said[entry.action] ?? changeInWords(entry)} by ${entry.actor_name}`,
    }));
}

function changeInWords({ action, before, after }: AuditEntry): string {
  const differs = (key: string) =>
    JSON.stringify(before?.[key] ?? null) !== JSON.stringify(after?.[key] ?? null);
  if (after?.rules && differs("rules")) return "Tables changed";
  if (after?.parameters && differs("parameters")) return "Parameters changed";
  return sentenceCase(action.replace(/^streams_/, ""));
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
