import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it, vi } from "vitest";
import type { Engine } from "@/api/types";
import { expectNoAxeViolations, renderUi, stubApi } from "@/test/render";
import { UnknownStreams } from "./unknown-streams";

const engine = (being_dropped: boolean) =>
  ({
    id: "engine01",
    name: "local",
    unknown_streams: [{ id: "madelater", status: "ENABLED", phase: "REPLICATING", being_dropped }],
  }) as Engine;

describe("UnknownStreams", () => {
  it("says what goes on, and drops it once its id is typed", async () => {
    let sent: unknown = null;
    stubApi({
      "POST /api/v1/engines/engine01:drop-stream": async (request) => {
        sent = await request.json();
        return { body: engine(true) };
      },
    });
    renderUi(<UnknownStreams engines={[engine(false)]} mayAct />);
    expect(screen.getByText(/local has the stream madelater/)).toBeVisible();
    expect(screen.getByText(/as it was, at last Replicating\./)).toBeVisible();
    await userEvent.click(screen.getByRole("button", { name: "Drop madelater" }));
    await userEvent.type(await screen.findByRole("textbox"), "madelater");
    await expectNoAxeViolations();
    const [confirm] = screen.getAllByRole("button", { name: /^Drop an unknown stream|^Delete|^Drop$/ });
    await userEvent.click(confirm as HTMLElement);
    await vi.waitFor(() => expect(sent).toEqual({ stream_id: "madelater" }));
  });

  it("waits for one that is being dropped, and lets only admins act", () => {
    const { unmount } = renderUi(<UnknownStreams engines={[engine(true)]} mayAct />);
    expect(screen.getByRole("button", { name: "Being dropped" })).toBeDisabled();
    unmount();
    renderUi(<UnknownStreams engines={[engine(false)]} mayAct={false} />);
    expect(screen.getByRole("button", { name: "Drop madelater" })).toBeDisabled();
  });
});
