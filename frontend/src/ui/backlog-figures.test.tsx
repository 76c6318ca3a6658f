import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { renderUi } from "@/test/render";
import { BacklogFigures } from "./backlog-figures";

const none = {
  bytes: 0,
  seconds: 0,
  age_seconds: 0,
  growth_bytes_per_second: 0,
  seconds_to_full: null,
};

test("what stands still says that its figure is the source's whole WAL", () => {
  renderUi(<BacklogFigures backlog={{ ...none, bytes: 5 }} parked={0} standing />);
  expect(screen.getByText("WAL written since").parentElement?.parentElement).toHaveTextContent(/5.B/);
  expect(screen.queryByText("Backlog")).toBeNull();
});

test("what has parked transactions is not caught up", () => {
  const { unmount } = renderUi(<BacklogFigures backlog={none} parked={0} />);
  expect(screen.getByText("Caught up in").parentElement?.parentElement).toHaveTextContent(/0 ms/);
  unmount();
  renderUi(<BacklogFigures backlog={none} parked={862} />);
  expect(screen.getByText("Caught up in").parentElement?.parentElement).toHaveTextContent(/–/);
});

test("a backlog that is not known is not caught up", () => {
  renderUi(<BacklogFigures backlog={{ ...none, bytes: null, seconds: null }} parked={0} />);
  expect(screen.getByText("Caught up in").parentElement?.parentElement).toHaveTextContent(/–/);
});
