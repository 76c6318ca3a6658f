import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it } from "vitest";
import { database, session, stream } from "@/test/data";
import { type Routes, renderAt, stubApi, stubEvents } from "@/test/render";

const lab = { available: true, why_not: null, load: null, causes: [] };
const overview = (...ids: string[]) => ({
  body: {
    streams: ids.map((id) => stream({ id, name: id })),
    engines_online: 1,
    engines_total: 1,
    live: true,
  },
});
const routes: Routes = {
  "GET /api/v1/session": { body: session },
  "GET /api/v1/alerts/counts": { body: { firing: 0, critical: 0, unacknowledged: 0, pending: 0 } },
  "GET /api/v1/overview": overview("demo"),
  "GET /api/v1/overview/rates": { body: { streams: [], live: true } },
  "GET /api/v1/databases": { body: { items: [], next_cursor: null } },
  "GET /api/v1/lab": { body: lab },
};
const steps = () => screen.findByRole("region", { name: "Next steps" });
const links = (within_: HTMLElement) =>
  within(within_)
    .getAllByRole("link")
    .map((link) => [link.textContent?.trim(), link.getAttribute("href")]);

beforeEach(stubEvents);

describe("beside the only stream, the overview", () => {
  it("leads to a stream of one's own, to the advisor and to the lab", async () => {
    stubApi(routes);
    const { history } = renderAt("/");
    const found = await steps();
    await within(found).findByRole("link", { name: "Open the lab" });
    expect(links(found)).toEqual([
      ["Create your own stream", "/streams/new"],
      ["Open the advisor", "/advisor"],
      ["Open the lab", "/lab"],
    ]);
    await userEvent.click(within(found).getByRole("link", { name: "Open the lab" }));
    expect(history.location.pathname).toBe("/lab");
  });

  it("offers nothing that cannot be done: no lab where there is none, no new stream to a viewer", async () => {
    const viewer = { ...session, user: { ...session.user, role: "viewer" } };
    stubApi({
      ...routes,
      "GET /api/v1/session": { body: viewer },
      "GET /api/v1/lab": { body: { ...lab, available: false } },
    });
    renderAt("/");
    expect(links(await steps())).toEqual([["Open the advisor", "/advisor"]]);
  });
});

describe("without any stream, the overview", () => {
  const registered = (...names: string[]) => ({
    "GET /api/v1/overview": overview(),
    "GET /api/v1/databases": {
      body: { items: names.map((name) => database(name, name)), next_cursor: null },
    },
  });

  it("does not ask for databases that are registered", async () => {
    stubApi({ ...routes, ...registered("shop", "warehouse") });
    renderAt("/");
    const found = await steps();
    expect(await within(found).findByText(/^The wizard takes databases that are registered/)).toBeVisible();
    await within(found).findByRole("link", { name: "Open the lab" });
    expect(within(found).queryByText(/Add .*databases?/)).toBeNull();
    expect(screen.queryByText(/wizard registers/)).toBeNull();
    expect(screen.getByText(/^A stream replicates tables/)).toHaveTextContent("The wizard takes databases");
  });

  it("asks for the second database where there is one", async () => {
    stubApi({ ...routes, ...registered("shop") });
    renderAt("/");
    const found = await steps();
    expect(await within(found).findByText("Add another database")).toBeVisible();
    expect(found).toHaveTextContent("shop is registered: a stream needs a source and a destination.");
    expect(within(found).getByRole("link", { name: "Add a database" })).toHaveAttribute("href", "/databases");
  });

  it("leads to databases, to a stream, to the advisor and its guide, and to the lab where there is one", async () => {
    stubApi({ ...routes, "GET /api/v1/overview": overview() });
    renderAt("/");
    const found = await steps();
    await within(found).findByRole("link", { name: "Open the lab" });
    expect(links(found)).toEqual([
      ["Add databases", "/databases"],
      ["Create a stream", "/streams/new"],
      ["Open the advisor", "/advisor"],
      [expect.anything(), expect.stringContaining("advisor")],
      ["Open the lab", "/lab"],
    ]);
  });

  it("offers a viewer without a lab the advisor alone", async () => {
    const viewer = { ...session, user: { ...session.user, role: "viewer" } };
    stubApi({
      ...routes,
      "GET /api/v1/session": { body: viewer },
      "GET /api/v1/overview": overview(),
      "GET /api/v1/lab": { body: { ...lab, available: false } },
    });
    renderAt("/");
    expect(links(await steps()).map(([, to]) => to)).toEqual([
      "/advisor",
      expect.stringContaining("advisor"),
    ]);
  });
});

it("is left out once there are several streams", async () => {
  stubApi({ ...routes, "GET /api/v1/overview": overview("demo", "own") });
  renderAt("/");
  expect(await screen.findByRole("table", { name: "Streams" })).toBeVisible();
  expect(screen.queryByText("Next steps")).toBeNull();
});
