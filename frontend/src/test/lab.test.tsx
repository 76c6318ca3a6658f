// The lab: the demo's load, what makes its stream slow, and what the advisor says beside it.
import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, expect, it } from "vitest";
import type { Lab, LabCause } from "@/api/types";
import { liveAnalysis } from "./advisor";
import { session } from "./data";
import { expectNoAxeViolations, type Routes, renderAt, stubApi, stubEvents } from "./render";

const off = { state: "off", begun_by: null, in_effect_at: null, until: null, failure: null } as const;

function cause(values: Partial<LabCause>): LabCause {
  return {
    ...off,
    name: "trigger",
    title: "Slow trigger",
    effect: "A trigger takes 50 ms.",
    sql: "CREATE TRIGGER slow;",
    end_sql: "DROP TRIGGER slow;",
    refused: null,
    delay: null,
    ...values,
  };
}

function lab(values: Partial<Lab> = {}): Lab {
  return {
    available: true,
    why: null,
    cure: null,
    stream: { id: "stream01", name: "orders to warehouse", source: "orders", destination: "warehouse" },
    load: { ...off, rate: 100, usual_rate: 100, rate_max: 2000 },
    causes: [cause({}), cause({ name: "lock", title: "Lock" })],
    ...values,
  };
}

const on = (values: Partial<LabCause> = {}) =>
  cause({
    state: "on",
    begun_by: "admin",
    until: new Date(Date.now() + 599_000).toISOString(),
    ...values,
  });

const routes = (known: Lab, role: "viewer" | "admin" = "admin"): Routes => ({
  "GET /api/v1/session": { body: { ...session, user: { ...session.user, role } } },
  "GET /api/v1/lab": { body: known },
  "GET /api/v1/advisor/analysis": { body: liveAnalysis() },
  "GET /api/v1/alerts/counts": { body: { open: 0, acknowledged: 0 } },
});

beforeEach(stubEvents);

const card = (name: string) => screen.findByRole("article", { name });

it("starts a cause, shows it with its countdown, and takes it back", async () => {
  const started = lab({ causes: [on(), cause({ name: "lock", title: "Lock" })] });
  let known = lab();
  const answer = (next: Lab) => () => {
    known = next;
    return { body: next };
  };
  const requests = stubApi({
    ...routes(known),
    "GET /api/v1/lab": () => ({ body: known }),
    "POST /api/v1/lab/causes/trigger:start": answer(started),
    "POST /api/v1/lab/causes/trigger:stop": answer(lab({ causes: [on({ state: "ending" })] })),
  });
  renderAt("/lab");
  const trigger = await card("Slow trigger");
  expect(trigger).toHaveTextContent("A trigger takes 50 ms.");
  expect(trigger).toHaveTextContent("CREATE TRIGGER slow;");
  await userEvent.click(within(trigger).getByRole("button", { name: "Make it slow" }));
  const back = await within(trigger).findByRole("button", { name: "Back to normal" });
  expect(trigger).toHaveTextContent("On");
  expect(within(trigger).getByRole("timer")).toHaveTextContent(/ends by itself in 9:5\d/);
  await expectNoAxeViolations();
  await userEvent.click(back);
  await waitFor(() => expect(trigger).toHaveTextContent("Ending"));
  expect(requests.filter(({ method }) => method === "POST")).toHaveLength(2);
});

it("makes the network as slow as was chosen, also while it is", async () => {
  const off = { ms: 50, usual_ms: 50, ms_max: 100 };
  const network = (values: Partial<LabCause> = {}) =>
    cause({ name: "network", title: "Slow network", delay: off, ...values });
  const bodies: unknown[] = [];
  let known = lab({ causes: [network()] });
  stubApi({
    ...routes(known),
    "GET /api/v1/lab": () => ({ body: known }),
    "POST /api/v1/lab/causes/network:start": async (request) => {
      const body = await request.json();
      bodies.push(body);
      known = lab({
        causes: [
          network({
            ...on({ name: "network", title: "Slow network" }),
            delay: { ...off, ms: body.delay_ms },
          }),
        ],
      });
      return { body: known };
    },
  });
  renderAt("/lab");
  const shown = await card("Slow network");
  const slider = within(shown).getByRole("slider", { name: "Delay each way, in milliseconds" });
  fireEvent.keyDown(slider, { key: "ArrowLeft", code: "ArrowLeft" });
  await waitFor(() =>
    expect(shown).toHaveTextContent("25 ms delay each way – a round trip takes 50 ms more"),
  );
  expect(bodies).toEqual([]);
  await userEvent.click(within(shown).getByRole("button", { name: "Make it slow" }));
  await waitFor(() => expect(bodies).toEqual([{ delay_ms: 25 }]));
  await within(shown).findByRole("button", { name: "Back to normal" });
  fireEvent.keyDown(slider, { key: "ArrowRight", code: "ArrowRight" });
  await waitFor(() => expect(bodies).toEqual([{ delay_ms: 25 }, { delay_ms: 50 }]));
  await expectNoAxeViolations();
});

it("sends the load that was chosen", async () => {
  const bodies: unknown[] = [];
  let known = lab();
  stubApi({
    ...routes(known),
    "GET /api/v1/lab": () => ({ body: known }),
    "PUT /api/v1/lab/load": async (request) => {
      const body = await request.json();
      bodies.push(body);
      known = lab({
        load: { ...off, state: "starting", rate: body.rate, usual_rate: 100, rate_max: 2000 },
      });
      return { body: known };
    },
  });
  renderAt("/lab");
  const slider = await screen.findByRole("slider", { name: /Load/ });
  expect(screen.getByText(/– the usual load/)).toBeVisible();
  fireEvent.keyDown(slider, { key: "ArrowRight", code: "ArrowRight" });
  await waitFor(() => expect(bodies).toEqual([{ rate: 200 }]));
  fireEvent.keyDown(slider, { key: "ArrowRight", code: "ArrowRight" });
  await waitFor(() => expect(bodies).toEqual([{ rate: 200 }, { rate: 500 }]));
  expect(await screen.findByText("Starting")).toBeVisible();
});

it("says what was cured at the database, and why something failed or cannot begin", async () => {
  stubApi(
    routes(
      lab({
        causes: [
          on({ state: "gone" }),
          cause({ name: "lock", title: "Lock", refused: "The stream does not replicate now." }),
          on({ name: "index", title: "Missing index", state: "starting", failure: "must be owner." }),
        ],
      }),
    ),
  );
  renderAt("/lab");
  expect(await card("Slow trigger")).toHaveTextContent("Cured");
  const lock = await card("Lock");
  expect(within(lock).getByRole("button", { name: "Make it slow" })).toBeDisabled();
  expect(lock).toHaveTextContent("The stream does not replicate now.");
  expect(await card("Missing index")).toHaveTextContent("must be owner. The lab tries again.");
});

it("lets a viewer look only", async () => {
  stubApi(routes(lab(), "viewer"));
  renderAt("/lab");
  const trigger = await card("Slow trigger");
  expect(within(trigger).getByRole("button", { name: "Make it slow" })).toBeDisabled();
  expect(screen.getByText(/Your role can only read/)).toBeVisible();
});

it("says why there is none, and does not offer one", async () => {
  stubApi(
    routes(
      lab({ available: false, why: "No demo.", cure: "Make one.", stream: null, load: null, causes: [] }),
    ),
  );
  renderAt("/lab");
  expect(await screen.findByText("There is no lab here")).toBeVisible();
  expect(screen.getByText(/No demo\. Make one\./)).toBeVisible();
  expect(screen.queryByRole("button", { name: /normal|slow/ })).toBeNull();
  const navigation = screen.getByRole("navigation", { name: "Main" });
  expect(within(navigation).queryByRole("link", { name: "Lab" })).toBeNull();
});
