// Effects of events on the query cache. Independent of the connection, so that they can be tested without one.
import { notifyManager, type Query, type QueryClient } from "@tanstack/react-query";
import type { components } from "./generated/schema";
import { keys } from "./keys";
import type { Overview, Sample, Stream, StreamSummary } from "./types";

type Schemas = components["schemas"];

/** Samples kept in the browser for each stream: an hour at one a second. */
export const SAMPLES_MAX = 3600;

/** Appends in order of time; a sample that is already there (after a reconnect) is not taken twice. */
export function appendSample(samples: Sample[], sample: Sample): Sample[] {
  const last = samples.at(-1);
  if (last && Date.parse(sample.at) <= Date.parse(last.at)) return samples;
  const next = [...samples, sample];
  return next.length > SAMPLES_MAX ? next.slice(next.length - SAMPLES_MAX) : next;
}

/** Points of the small charts beside streams, by the stream's id. */
export const RATES_MAX = 120;
export type Rates = Record<string, { at: number; rate: number | null }[]>;

function withRates(rates: Rates, samples: Sample[]): Rates {
  const next = { ...rates };
  for (const { stream_id, at, lcrs_per_second } of samples) {
    const known = next[stream_id] ?? [];
    const time = Date.parse(at);
    if (time <= (known.at(-1)?.at ?? 0)) continue;
    next[stream_id] = [...known, { at: time, rate: lcrs_per_second }].slice(-RATES_MAX);
  }
  return next;
}

function refreshed<Summary extends StreamSummary>(summary: Summary, sample: Sample): Summary {
  return {
    ...summary,
    lcrs_per_second: sample.lcrs_per_second,
    transactions_per_second: sample.transactions_per_second,
    bytes_per_second: sample.bytes_per_second,
    latency: sample.latency,
    lag: sample.lag,
    error_queue_transactions: sample.error_queue_transactions,
    state: sample.state ?? summary.state,
    destinations: summary.destinations.map((destination) => {
      const own = sample.destinations.find(({ destination_id }) => destination_id === destination.id);
      if (!own) return destination;
      const { destination_id: _, status: _status, phase: _phase, bytes_per_second: _bytes, ...numbers } = own;
      return { ...destination, ...numbers, state: own.state ?? destination.state };
    }),
    sampled_at: sample.at,
  };
}

/** Changes what was read without making it look newly read: the rest of it is as old as before. */
function amend<Data>(cache: QueryClient, queryKey: readonly unknown[], change: (data: Data) => Data): void {
  cache.setQueryData<Data>(queryKey, (data) => data && change(data), {
    updatedAt: cache.getQueryState(queryKey)?.dataUpdatedAt,
  });
}

/** All at once: each change of what was read draws the page anew. */
export function takeSamples(cache: QueryClient, samples: Sample[]): void {
  const latest = new Map(samples.map((sample) => [sample.stream_id, sample]));
  notifyManager.batch(() => {
    for (const sample of samples) {
      // Only histories that a page has asked for are kept; the first read brings the rest.
      cache.setQueriesData<Sample[]>(
        { queryKey: keys.samples(sample.stream_id) },
        (known) => known && appendSample(known, sample),
      );
    }
    cache.setQueryData<Rates>(keys.rates, (rates) => rates && withRates(rates, samples));
    amend<Overview>(cache, keys.overview, (overview) => ({
      ...overview,
      streams: overview.streams.map((stream) => {
        const sample = latest.get(stream.id);
        return sample ? refreshed(stream, sample) : stream;
      }),
    }));
    for (const sample of latest.values())
      amend<Stream>(cache, keys.stream(sample.stream_id), (stream) => refreshed(stream, sample));
  });
}

export type LiveEvent =
  | { name: "stream.sample"; data: Sample }
  | { name: "stream.status"; data: Pick<Schemas["StreamStatusEvent"], "stream_id"> }
  | { name: "stream.deleted"; data: Pick<Schemas["StreamDeletedEvent"], "stream_id"> }
  | { name: "operation"; data: Partial<Schemas["OperationEvent"]> }
  | { name: "engine"; data: Partial<Schemas["EngineEvent"]> }
  | { name: "alert"; data: Partial<Schemas["AlertEvent"]> }
  | { name: "reset"; data: unknown };

export const eventNames: LiveEvent["name"][] = [
  "stream.sample",
  "stream.status",
  "stream.deleted",
  "operation",
  "engine",
  "alert",
  "reset",
];

/** Reads all that is shown again; also what is being read for the first time, whose answer may be older than an event. */
export function readAgain(cache: QueryClient): void {
  const beingRead = cache.getQueryCache().findAll({ fetchStatus: "fetching", predicate: isEmpty });
  void cache.invalidateQueries({ predicate: (query) => !isEmpty(query) });
  for (const query of beingRead) {
    const again = () => cache.invalidateQueries({ queryKey: query.queryKey, exact: true });
    query.promise?.then(again, again);
  }
}

const isEmpty = (query: Query) => query.state.data === undefined;

export function takeEvent(cache: QueryClient, event: LiveEvent): void {
  const again = (queryKey: readonly unknown[]) => void cache.invalidateQueries({ queryKey });
  switch (event.name) {
    case "stream.sample":
      takeSamples(cache, [event.data]);
      break;
    case "stream.status":
      again(keys.overview);
      again(keys.stream(event.data.stream_id));
      again(keys.topology);
      break;
    case "stream.deleted":
      again(keys.overview);
      again(keys.stream(event.data.stream_id));
      again(keys.databases);
      again(keys.topology);
      break;
    case "operation":
      again(keys.operations);
      break;
    case "engine":
      again(keys.engines);
      again(keys.overview);
      break;
    case "alert":
      again(keys.alertCounts);
      again(keys.openAlerts);
      again(keys.alertHistory);
      again(keys.deliveries);
      break;
    case "reset":
      void cache.invalidateQueries();
      break;
  }
}
