import { screen } from "@testing-library/react";
import { expect, it } from "vitest";
import type { StreamEvent } from "@/api/types";
import { renderUi, stubApi } from "@/test/render";
import { EventList } from "./event-list";
import { useEvents } from "./use-events";

const EVENTS = "GET /api/v1/streams/stream01/history/events";
const range = { from: Date.UTC(2026, 10, 21), until: Date.UTC(2026, 10, 22) };
const event = (number: number): StreamEvent => ({
  id: `action-${number}`,
  at: "2026-11-21T10:00:00Z",
  until: null,
  kind: "restart",
  sentence: `Stopped (${number})`,
  actor_name: "ann",
  severity: null,
});
const cures = { "GET /api/v1/advisor/cures": { body: { items: [], next_cursor: null } } };

function Shown() {
  return <EventList {...useEvents("stream01", range)} />;
}

it("reads events without asking who reads them, and every page of a range", async () => {
  const requests = stubApi({
    ...cures,
    [EVENTS]: (request) =>
      new URL(request.url).searchParams.get("cursor") === "second"
        ? { body: { items: [event(1)], next_cursor: null } }
        : { body: { items: [event(3), event(2)], next_cursor: "second" } },
  });
  renderUi(<Shown />);
  expect(await screen.findAllByText(/^Stopped \(\d\) by ann$/)).toHaveLength(3);
  const asked = requests
    .map(({ url }) => new URL(url))
    .filter(({ pathname }) => pathname.includes("history"));
  expect(asked.map(({ searchParams }) => searchParams.get("since"))).toEqual(
    Array(2).fill("2026-11-21T00:00:00.000Z"),
  );
  expect(screen.queryByText(/Only the newest/)).toBeNull();
});

it("says that a range has more events than it shows", async () => {
  let pages = 0;
  stubApi({
    ...cures,
    [EVENTS]: () => {
      pages += 1;
      const items = Array.from({ length: 500 }, (_, number) => event(pages * 500 + number));
      return { body: { items, next_cursor: "more" } };
    },
  });
  renderUi(<Shown />);
  expect(await screen.findByText(/Only the newest 1.000 restarts, changes and alerts/)).toBeVisible();
  expect(pages).toBe(2);
});

it("says that events could not be read, instead of that there are none", async () => {
  stubApi({
    ...cures,
    [EVENTS]: {
      status: 503,
      body: { title: "Away", code: "store_unavailable", detail: "The store is away." },
    },
  });
  renderUi(<Shown />);
  expect(await screen.findByText(/not up to date: The store is away\./)).toBeVisible();
  expect(screen.queryByText(/No restarts/)).toBeNull();
});
