import "@mantine/core/styles.layer.css";
import "@/ui/tokens.css";
import { MantineProvider } from "@mantine/core";
import { useState } from "react";
import { flushSync } from "react-dom";
import { createRoot } from "react-dom/client";
import uPlot from "uplot";
import { cssVariables, theme } from "@/app/theme";
import { type Maybe, rate } from "@/lib/format";
import { TimeChart } from "@/ui/time-chart";

/** Parameters from the address: ?series=8&points=3600&rate=10&seconds=15 */
const asked = new URLSearchParams(window.location.search);
const SERIES = Number(asked.get("series"));
const POINTS = Number(asked.get("points"));
const RATE = Number(asked.get("rate"));
const SECONDS = Number(asked.get("seconds"));

interface Samples {
  times: number[];
  values: number[][];
}

interface Subject {
  /** Shows the samples; when it returns, everything but the microtasks of the drawing is done. */
  show: (samples: Samples) => void;
  end: () => void;
}

interface Measured {
  /** Milliseconds of the main thread for each update. */
  updates: number[];
  /** Milliseconds between frames. */
  frames: number[];
  /** Milliseconds of each task that held the main thread for more than 50. */
  longTasks: number[];
}

const lcrRate = (value: Maybe) => rate(value, "LCR/s");

function wave(step: number, line: number): number {
  return (
    20_000 + 4_000 * line + 3_000 * Math.sin(step / (17 + 5 * line)) + ((step * 7919 + line * 104_729) % 997)
  );
}

function firstSamples(): Samples {
  const now = Date.now();
  const steps = Array.from({ length: POINTS }, (_, step) => step);
  return {
    times: steps.map((step) => now - (POINTS - step) * (1000 / RATE)),
    values: Array.from({ length: SERIES }, (_, line) => steps.map((step) => wave(step, line))),
  };
}

function nextSamples({ times, values }: Samples, step: number): Samples {
  return {
    times: [...times.slice(1), Date.now()],
    values: values.map((series, line) => [...series.slice(1), wave(step, line)]),
  };
}

/** The console's own chart: legend, spoken summary, axes in its formats. */
function ours(host: HTMLElement, first: Samples): Subject {
  let set: (samples: Samples) => void = () => undefined;
  function Live() {
    const [samples, setSamples] = useState(first);
    set = setSamples;
    const series = samples.values.map((values, line) => ({
      label: `series ${line + 1}`,
      values,
      colour: line + 1,
    }));
    return (
      <TimeChart
        windowSeconds={POINTS / RATE}
        title="LCR rate"
        times={samples.times}
        series={series}
        format={lcrRate}
        height={260}
      />
    );
  }
  const root = createRoot(host);
  flushSync(() =>
    root.render(
      <MantineProvider theme={theme} cssVariablesResolver={cssVariables}>
        <Live />
      </MantineProvider>,
    ),
  );
  return { show: (samples) => flushSync(() => set(samples)), end: () => root.unmount() };
}

/** The yardstick: uPlot alone, of the same size, with its own axes and no legend. */
function bare(host: HTMLElement, first: Samples): Subject {
  const aligned = ({ times, values }: Samples): uPlot.AlignedData => [
    times.map((time) => time / 1000),
    ...values,
  ];
  const lines = first.values.map((_, line) => ({
    label: `series ${line + 1}`,
    stroke: "#4477aa",
    points: { show: false },
  }));
  const plot = new uPlot(
    { width: host.clientWidth, height: 260, legend: { show: false }, series: [{}, ...lines] },
    aligned(first),
    host,
  );
  return { show: (samples) => plot.setData(aligned(samples)), end: () => plot.destroy() };
}

async function measure(make: (host: HTMLElement, first: Samples) => Subject): Promise<Measured> {
  const host = document.createElement("div");
  document.body.append(host);
  let samples = firstSamples();
  const subject = make(host, samples);
  await new Promise((done) => setTimeout(done, 1000));
  const measured: Measured = { updates: [], frames: [], longTasks: [] };
  const observer = new PerformanceObserver((list) => {
    measured.longTasks.push(...list.getEntries().map((entry) => entry.duration));
  });
  observer.observe({ type: "longtask" });
  let before = performance.now();
  let frame = requestAnimationFrame(function next(now) {
    measured.frames.push(now - before);
    before = now;
    frame = requestAnimationFrame(next);
  });
  const end = performance.now() + SECONDS * 1000;
  for (let step = POINTS; performance.now() < end; step += 1) {
    const due = performance.now() + 1000 / RATE;
    samples = nextSamples(samples, step);
    const begun = performance.now();
    subject.show(samples);
    await null; // uPlot draws in a microtask of its own, which was queued before this one
    measured.updates.push(performance.now() - begun);
    await new Promise((done) => setTimeout(done, Math.max(0, due - performance.now())));
  }
  cancelAnimationFrame(frame);
  observer.disconnect();
  subject.end();
  host.remove();
  return measured;
}

const results = { bare: await measure(bare), ours: await measure(ours) };
await fetch("/results", { method: "POST", body: JSON.stringify(results) });
