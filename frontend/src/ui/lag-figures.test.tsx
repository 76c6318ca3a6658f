import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { renderUi } from "@/test/render";
import { LagFigures } from "./lag-figures";

const none = {
  bytes: 0,
  seconds: 0,
  age_seconds: 0,
  growth_bytes_per_second: 0,
  seconds_to_full: null,
};

test("what stands still says that its figure is the source's whole WAL", () => {
  renderUi(<LagFigures lag={{ ...none, bytes: 5 }} parked={0} standing />);
  expect(screen.getByText("WAL written since").parentElement?.parentElement).toHaveTextContent(/5.B/);
  expect(screen.queryByText("Lag")).toBeNull();
});

test("what has parked transactions, or may have, is not caught up", () => {
  const { unmount } = renderUi(<LagFigures lag={none} parked={0} />);
  expect(screen.getByText("Caught up in").parentElement?.parentElement).toHaveTextContent(/0 ms/);
  unmount();
  for (const parked of [862, null]) {
    const { unmount: remove } = renderUi(<LagFigures lag={none} parked={parked} />);
    expect(screen.getByText("Caught up in").parentElement?.parentElement).toHaveTextContent(/–/);
    remove();
  }
});

test("a lag that is not known is not caught up", () => {
  renderUi(<LagFigures lag={{ ...none, bytes: null, seconds: null }} parked={0} />);
  expect(screen.getByText("Caught up in").parentElement?.parentElement).toHaveTextContent(/–/);
});

test("a slot that nobody reads tells when it is lost", () => {
  const slot = { retained_bytes: 5, read_at: "2026-11-21T00:00:05Z", seconds_to_idle_timeout: 7200 };
  const { unmount } = renderUi(<LagFigures lag={none} parked={0} slot={slot} />);
  expect(screen.getByText(/^slot lost in 2.h/)).toHaveTextContent(/unless read$/);
  unmount();
  renderUi(<LagFigures lag={none} parked={0} slot={{ ...slot, seconds_to_idle_timeout: null }} />);
  expect(screen.queryByText(/slot lost/)).toBeNull();
});
