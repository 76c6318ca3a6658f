import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it, vi } from "vitest";
import { destination, parallelism, stream } from "@/test/data";
import { renderUi, stubApi } from "@/test/render";
import { DestinationParameters } from "./destination-parameters";

describe("DestinationParameters", () => {
  it("lets it differ from the stream's parameters, and be as the stream again", async () => {
    const own = destination({ actions: ["drop"], parameters: { parallelism: 8 } });
    let sent: unknown = null;
    const ofQueue = { ...parallelism, name: "queue_size", per_destination: false };
    const limit = {
      ...parallelism,
      name: "spill_limit_mb",
      live: false,
      default: 10240,
      maximum: 99999,
      unit: "MiB",
    };
    stubApi({
      "GET /api/v1/stream-parameters": { body: { parameters: [parallelism, limit, ofQueue] } },
      "PATCH /api/v1/streams/stream01/destinations/warehouse": async (request) => {
        sent = { ifMatch: request.headers.get("If-Match"), body: await request.json() };
        return { body: stream() };
      },
    });
    const whole = stream({ mode: "fan-out", destinations: [own], effective_parameters: { parallelism: 2 } });
    const onClose = vi.fn();
    renderUi(<DestinationParameters stream={whole} destination={own} mayAct opened onClose={onClose} />);
    const dialog = await screen.findByRole("dialog", { name: "Parameters of warehouse" });
    const appliers = await within(dialog).findByRole("textbox", { name: "parallelism" });
    expect(appliers).toHaveValue("8 appliers");
    expect(within(dialog).queryByRole("textbox", { name: "queue_size" })).toBeNull();
    await userEvent.click(
      within(dialog).getByRole("button", { name: "Use the stream's value of parallelism" }),
    );
    expect(appliers).toHaveValue("2 appliers");
    await userEvent.click(within(dialog).getByRole("button", { name: /^Show . advanced/ }));
    expect(within(dialog).getByText("live")).toBeVisible();
    expect(within(dialog).getByText("restarts components")).toBeVisible();
    const field = within(dialog).getByRole("textbox", { name: "spill_limit_mb" });
    await userEvent.clear(field);
    await userEvent.type(field, "500");
    await userEvent.click(within(dialog).getByRole("button", { name: "Save parameters" }));
    await waitFor(() =>
      expect(sent).toEqual({ ifMatch: '"7"', body: { parameters: { spill_limit_mb: 500 } } }),
    );
    await waitFor(() => expect(onClose).toHaveBeenCalled());
  });
});
