import { screen } from "@testing-library/react";
import { expect, it } from "vitest";
import type { StreamSummary } from "@/api/types";
import { stream } from "@/test/data";
import { renderUi } from "@/test/render";
import { OverviewTotals } from "./totals";

const last = { p50_ms: 5, p99_ms: 9, at: "2026-11-21T00:00:00Z" };
const overview = (streams: StreamSummary[]) => ({ streams, engines_online: 1, engines_total: 1, live: true });
const worst = () => screen.getByText("Worst latency p99").parentElement;

it("says of the worst latency that it is a lower bound", () => {
  const idle = stream({ latency: { p50_ms: null, p99_ms: null, transactions: 0, last, at_least: false } });
  const dead = stream({
    latency: { p50_ms: null, p99_ms: 240_000, transactions: 0, last: null, at_least: true },
  });
  const { unmount } = renderUi(<OverviewTotals overview={overview([idle, dead])} />);
  expect(worst()).toHaveTextContent(/≥ 4.min/);
  unmount();
  renderUi(<OverviewTotals overview={overview([idle])} />);
  expect(worst()).toHaveTextContent(/9.ms.* ago/);
});
