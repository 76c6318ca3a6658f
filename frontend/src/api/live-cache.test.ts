import { QueryClient, QueryObserver } from "@tanstack/react-query";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { destination, lag, sample, stream } from "@/test/data";
import { keys } from "./keys";
import { appendSample, RATES_MAX, type Rates, readAgain, SAMPLES_MAX, takeEvent } from "./live-cache";
import type { Overview, Sample, Stream } from "./types";

const at = (second: number) => new Date(Date.UTC(2026, 10, 21, 0, 0, second)).toISOString();

describe("appendSample", () => {
  it("keeps the order and takes no sample twice", () => {
    const samples = [sample(at(1))];
    expect(appendSample(samples, sample(at(2)))).toHaveLength(2);
    expect(appendSample(samples, sample(at(1)))).toBe(samples);
    expect(appendSample(samples, sample(at(0)))).toBe(samples);
  });

  it("is bounded", () => {
    let samples: Sample[] = Array.from({ length: SAMPLES_MAX }, (_, second) => sample(at(second)));
    samples = appendSample(samples, sample(at(SAMPLES_MAX)));
    expect(samples).toHaveLength(SAMPLES_MAX);
    expect(samples.at(-1)?.at).toBe(at(SAMPLES_MAX));
  });
});

describe("readAgain", () => {
  const shown = (cache: QueryClient, queryFn: () => Promise<string>) =>
    new QueryObserver(cache, { queryKey: keys.databases, queryFn }).subscribe(() => {});

  it("reads what is shown once more", async () => {
    const cache = new QueryClient();
    const answers = ["before the event", "after it"];
    const hide = shown(cache, async () => answers.shift() ?? "too often");
    await vi.waitFor(() => expect(cache.getQueryData(keys.databases)).toBe("before the event"));
    readAgain(cache);
    await vi.waitFor(() => expect(cache.getQueryData(keys.databases)).toBe("after it"));
    hide();
  });

  it("reads again what was being read, once that has its answer", async () => {
    const cache = new QueryClient();
    const waiting: ((answer: string) => void)[] = [];
    const hide = shown(cache, () => new Promise((resolve) => waiting.push(resolve)));
    await vi.waitFor(() => expect(waiting).toHaveLength(1));
    readAgain(cache);
    expect(waiting).toHaveLength(1);
    waiting[0]?.("before the event");
    await vi.waitFor(() => expect(waiting).toHaveLength(2));
    waiting[1]?.("after it");
    await vi.waitFor(() => expect(cache.getQueryData(keys.databases)).toBe("after it"));
    hide();
  });
});

describe("takeEvent", () => {
  let cache: QueryClient;
  const overview = (): Overview => ({ streams: [stream()], engines_online: 1, engines_total: 1, live: true });

  beforeEach(() => {
    cache = new QueryClient();
    cache.setQueryData(keys.overview, overview());
    cache.setQueryData(keys.stream("stream01"), stream());
  });

  it("brings a sample's numbers to the overview and the stream's page", () => {
    const data = sample(at(9), {
      lcrs_per_second: 500,
      latency: { p50_ms: 2, p99_ms: 9, transactions: 50, last: null, at_least: false },
      lag: lag({ bytes: 10, seconds: 0 }),
    });
    takeEvent(cache, { name: "stream.sample", data });
    const inOverview = cache.getQueryData<Overview>(keys.overview)?.streams[0];
    const onPage = cache.getQueryData<Stream>(keys.stream("stream01"));
    for (const seen of [inOverview, onPage])
      expect(seen).toMatchObject({ lcrs_per_second: 500, latency: { p99_ms: 9 }, sampled_at: at(9) });
    expect(onPage?.etag).toBe('"7"');
  });

  it("brings the states of the stream and its destinations, where the sample has them", () => {
    const east = destination({ id: "east" });
    const stalled = { ...east, destination_id: "east", bytes_per_second: 0, state: "STALLED" as const };
    cache.setQueryData(keys.stream("stream01"), stream({ destinations: [east] }));
    const states = () => {
      const { state, destinations } = cache.getQueryData<Stream>(keys.stream("stream01")) ?? {};
      return [state, destinations?.[0]?.state];
    };
    takeEvent(cache, {
      name: "stream.sample",
      data: sample(at(9), { state: "STALLED", destinations: [stalled] }),
    });
    expect(states()).toEqual(["STALLED", "STALLED"]);
    takeEvent(cache, {
      name: "stream.sample",
      data: sample(at(10), { state: null, destinations: [{ ...stalled, state: null }] }),
    });
    expect(states()).toEqual(["STALLED", "STALLED"]);
  });

  it("keeps a history only when a page has asked for one", () => {
    takeEvent(cache, { name: "stream.sample", data: sample(at(9)) });
    expect(cache.getQueryData(keys.samples("stream01"))).toBeUndefined();
    cache.setQueryData([...keys.samples("stream01"), 5], [sample(at(8))]);
    takeEvent(cache, { name: "stream.sample", data: sample(at(9)) });
    expect(cache.getQueryData<Sample[]>([...keys.samples("stream01"), 5])).toHaveLength(2);
  });

  it("appends to the small charts' rates, each sample once and no more than they show", () => {
    cache.setQueryData(keys.rates, {
      stream01: Array.from({ length: RATES_MAX }, (_, second) => ({ at: Date.parse(at(second)), rate: 1 })),
    });
    for (let turn = 0; turn < 2; turn += 1)
      takeEvent(cache, {
        name: "stream.sample",
        data: sample(at(RATES_MAX), { lcrs_per_second: 7 }),
      });
    const rates = cache.getQueryData<Rates>(keys.rates)?.stream01;
    expect(rates).toHaveLength(RATES_MAX);
    expect(rates?.slice(-2).map(({ rate }) => rate)).toEqual([1, 7]);
  });

  it("reads again what a change of status touches", () => {
    takeEvent(cache, { name: "stream.status", data: { stream_id: "stream01" } });
    expect(cache.getQueryState(keys.overview)?.isInvalidated).toBe(true);
    expect(cache.getQueryState(keys.stream("stream01"))?.isInvalidated).toBe(true);
  });

  it("reads everything again after missed events", () => {
    takeEvent(cache, { name: "reset", data: {} });
    expect(cache.getQueryState(keys.stream("stream01"))?.isInvalidated).toBe(true);
  });
});
