// Events of a stream while its charts were drawn: a mark in each of them, and a line in a list.

import type { AppliedCure, Outage, StreamEvent } from "@/api/types";
import { cureStateInWords } from "@/lib/advisor";
import { asText, duration, formatTime } from "@/lib/format";
import { withFullStop } from "@/lib/sentences";
import type { Tone } from "@/lib/states";

export interface HistoryEvent {
  key: string;
  /** Milliseconds since the epoch. */
  at: number;
  /** When it was over; absent of what has no length. Infinite while it lasts. */
  until?: number;
  tone: Tone;
  kind: "Restart" | "Change" | "Alert" | "Cure" | "Outage";
  text: string;
}

/** Those that the control plane tells, and cures: the oldest first. */
export function eventsOf(events: readonly StreamEvent[], cures: readonly AppliedCure[]): HistoryEvent[] {
  return sorted([...events.map(shown), ...curesOf(cures)]);
}

/** The events within a range and those that reach into it, the oldest first. */
export function eventsBetween(events: HistoryEvent[], since: number, until: number): HistoryEvent[] {
  return sorted(events.filter(({ at, until: end }) => at <= until && (end ?? at) >= since));
}

function sorted(events: HistoryEvent[]): HistoryEvent[] {
  return events.sort((a, b) => a.at - b.at);
}

const STATES: Record<Outage["state"], [over: string, lasting: string]> = {
  RETRYING: ["did not work", "has not worked"],
  ABORTED: ["had stopped with an error", "has been stopped by an error"],
  UNREACHABLE: ["was unreachable", "has been unreachable"],
  REFUSED: ["refused the control plane", "has refused the control plane"],
};

/** Times in which the stream, a destination or an engine did not work: spans in the charts. */
export function outageEvents(outages: readonly Outage[]): HistoryEvent[] {
  return outages.map(({ of, id, name, state, reason, became, became_at, since, until }) => {
    const [begin, end] = [Date.parse(since), until ? Date.parse(until) : Number.POSITIVE_INFINITY];
    const lasted = until
      ? `for ${asText(duration((end - begin) / 1000))}, until ${formatTime(until)}`
      : "since then";
    const later = became === null ? "" : ` From ${formatTime(became_at)} on: ${became}`;
    const subject = of === "stream" ? "The stream" : `${of === "engine" ? "Engine" : "Destination"} ${name}`;
    return {
      key: `outage ${id} ${since}`,
      at: begin,
      until: end,
      tone: of === "engine" ? "warning" : "bad",
      kind: "Outage",
      text: `${subject} ${STATES[state][until ? 0 : 1]} ${lasted}. ${withFullStop(reason)}${later}`,
    };
  });
}

const TITLES = { restart: "Restart", change: "Change", alert: "Alert" } as const;

function shown({ id, at, until, kind, sentence, actor_name, severity }: StreamEvent): HistoryEvent {
  const by = actor_name === null ? "" : ` by ${actor_name}`;
  const resolved = until === null ? "" : `, until ${formatTime(until)}`;
  return {
    key: id,
    at: Date.parse(at),
    tone: toneOf(severity, actor_name),
    kind: TITLES[kind],
    text: `${sentence}${by}${resolved}`,
  };
}

function toneOf(severity: StreamEvent["severity"], actor: string | null): Tone {
  if (severity !== null) return severity === "critical" ? "bad" : "warning";
  return actor === null ? "quiet" : "busy";
}

function curesOf(cures: readonly AppliedCure[]): HistoryEvent[] {
  return cures.map(({ id, created_at, finding, state }) => ({
    key: `cure ${id}`,
    at: Date.parse(created_at),
    tone: "good",
    kind: "Cure",
    text: `${finding.title}: ${cureStateInWords(state).label.toLowerCase()}`,
  }));
}
