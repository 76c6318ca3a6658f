// One event stream for the whole tab: it feeds the query cache and tells whether the picture is live.
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useSyncExternalStore } from "react";
import { eventNames, type LiveEvent, readAgain, takeEvent, takeSamples } from "./live-cache";
import type { Sample } from "./types";

export type LiveState = "connecting" | "live" | "lost";

const RETRY_AFTER_MS = 3000;
/** Samples of many streams come one by one; they are shown together, so that a page is drawn once a second. */
const SHOW_EVERY_MS = 1000;
/** After a pause the first sample waits this long for those that come with it. */
const TOGETHER_MS = 50;

let state: LiveState = "connecting";
let lostSince: number | null = null;
/** When the last sample came; before the first one, when the connection was opened. */
let sampledAt: number | null = null;
const listeners = new Set<() => void>();

function change(next: LiveState): void {
  if (next === state) return;
  lostSince = next === "lost" ? Date.now() : null;
  sampledAt = next === "live" ? Date.now() : null;
  state = next;
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useLiveState(): { state: LiveState; lostSince: number | null } {
  const current = useSyncExternalStore(subscribe, () => state);
  return { state: current, lostSince };
}

/** Not a state: it changes each second, and who asks looks at the clock. */
export function lastSampleAt(): number | null {
  return sampledAt;
}

function parse(name: LiveEvent["name"], text: string): LiveEvent | null {
  try {
    return { name, data: JSON.parse(text) } as LiveEvent;
  } catch {
    return null;
  }
}

/** Opens the event stream while the calling component lives. Used once, by the shell. */
export function useLiveEvents(): void {
  const cache = useQueryClient();
  useEffect(() => {
    let source: EventSource | null = null;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let closed = false;
    let samples: Sample[] = [];
    let showing: ReturnType<typeof setTimeout> | undefined;
    let shownAt = 0;

    const show = () => {
      showing = undefined;
      shownAt = Date.now();
      takeSamples(cache, samples);
      samples = [];
    };

    const open = () => {
      if (closed) return;
      source = new EventSource("/api/v1/events");
      source.onopen = () => change("live");
      // From here on no event is missed. Before, some were: since the page was read, or the connection lost.
      source.addEventListener("hello", () => readAgain(cache));
      source.onerror = () => {
        change("lost");
        // The browser reconnects by itself unless the answer was not an event stream at all.
        if (source?.readyState === EventSource.CLOSED) {
          clearTimeout(timer);
          timer = setTimeout(open, RETRY_AFTER_MS);
        }
      };
      for (const name of eventNames) {
        source.addEventListener(name, (message) => {
          const event = parse(name, (message as MessageEvent<string>).data);
          if (event?.name === "stream.sample") {
            sampledAt = Date.now();
            samples.push(event.data);
            showing ??= setTimeout(show, Math.max(TOGETHER_MS, shownAt + SHOW_EVERY_MS - Date.now()));
          } else if (event) takeEvent(cache, event);
          else void cache.invalidateQueries();
        });
      }
    };

    open();
    return () => {
      closed = true;
      clearTimeout(timer);
      clearTimeout(showing);
      source?.close();
      change("connecting");
    };
  }, [cache]);
}
