// Alerts as a user meets them: the bell, the page, rules and channels.
import { act, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it } from "vitest";
import type { Alert, AlertChannel } from "@/api/types";
import {
  channelFaults,
  emptyChannel,
  toChannelCreate,
  toChannelUpdate,
} from "@/features/alerts/channel-form";
import { byUrgency } from "@/features/alerts/open-alerts";
import { inUnit } from "@/features/alerts/words";
import { ALERT_AT as AT, alert, rule } from "./alerts";
import { session, stream } from "./data";
import { EventSourceStub, expectNoAxeViolations, type Routes, renderAt, stubApi, stubEvents } from "./render";

const channel: AlertChannel = {
  id: "channel1",
  name: "on call",
  kind: "webhook",
  enabled: true,
  min_severity: "warning",
  send_resolved: true,
  settings: { url: "https://hooks.example.org/" },
  has_secret: true,
  last_delivery: null,
  created_at: AT,
  updated_at: AT,
  etag: '"1"',
};

const unreachable = {
  type: "urn:thalweg:problem:store_unreachable",
  title: "The control store cannot be reached",
  status: 503,
  detail: "It does not answer.",
  instance: "/",
  code: "store_unreachable",
  cure: "Start it.",
  sql: null,
  errors: [],
};

const page = (items: unknown[]) => ({ body: { items, next_cursor: null } });
const counts = (firing: number, outdated: string | null = null) => ({
  body: { firing, critical: 0, unacknowledged: firing, pending: 0, evaluated_at: null, outdated },
});
const routes: Routes = {
  "GET /api/v1/session": { body: session },
  "GET /api/v1/overview": { body: { streams: [stream()], engines_online: 1, engines_total: 1, live: true } },
  "GET /api/v1/alerts/counts": counts(0),
  "GET /api/v1/alerts": page([]),
  "GET /api/v1/alerts/rules": { body: { rules: [rule] } },
  "GET /api/v1/alerts/channels": page([channel]),
  "GET /api/v1/alerts/deliveries": page([]),
  "GET /api/v1/alerts/silences": page([]),
};

beforeEach(stubEvents);

it("says that nobody evaluates alerts any more", async () => {
  const outdated = "Alerts have not been evaluated for 3 min: none begins or ends.";
  stubApi({ ...routes, "GET /api/v1/alerts/counts": counts(0, outdated) });
  renderAt("/alerts");
  expect(await screen.findByText(outdated)).toBeVisible();
  await expectNoAxeViolations();
});

describe("the bell", () => {
  it("counts alerts that need attention, as soon as an event arrives", async () => {
    let firing: Alert[] = [];
    stubApi({
      ...routes,
      "GET /api/v1/alerts/counts": () => counts(firing.length),
      "GET /api/v1/alerts": () => page(firing),
    });
    renderAt("/alerts");
    expect(await screen.findByRole("link", { name: "Alerts: none needs attention" })).toBeVisible();
    expect(await screen.findByText("No alert is firing")).toBeVisible();
    firing = [alert("1")];
    act(() => EventSourceStub.latest?.emit("alert", { alert_id: "1", state: "firing" }));
    expect(await screen.findByRole("link", { name: "Alerts: 1 needs attention" })).toBeVisible();
    expect(await screen.findByRole("article", { name: /The error queue is not empty/ })).toBeVisible();
    await expectNoAxeViolations();
  });
});

describe("the page", () => {
  it("acknowledges with a note, which everybody sees, and takes back", async () => {
    let now = alert("1");
    const requests = stubApi({
      ...routes,
      "GET /api/v1/alerts": () => page([now]),
      "POST /api/v1/alerts/1/acknowledge": async (request) => {
        const { note } = await request.json();
        now = alert("1", { acknowledged_at: AT, acknowledged_by: "admin", note });
        return { body: now };
      },
      "POST /api/v1/alerts/1/unacknowledge": () => {
        now = alert("1");
        return { body: now };
      },
    });
    renderAt("/alerts");
    await userEvent.click(await screen.findByRole("button", { name: "Acknowledge…" }));
    const dialog = await screen.findByRole("dialog", { name: "Acknowledge alert" });
    await userEvent.type(within(dialog).getByLabelText("Note"), " The key is added tonight. ");
    await userEvent.click(within(dialog).getByRole("button", { name: "Acknowledge" }));
    expect(await screen.findByText("Acknowledged by admin")).toBeVisible();
    expect(screen.getByRole("article")).toHaveTextContent("admin: The key is added tonight.");
    await userEvent.click(screen.getByRole("button", { name: "Withdraw" }));
    expect(await screen.findByRole("button", { name: "Acknowledge…" })).toBeVisible();
    expect(requests.filter(({ method }) => method === "POST")).toHaveLength(2);
  });

  it("lets a viewer only look, and shows a failed read with its cure", async () => {
    stubApi({
      ...routes,
      "GET /api/v1/session": { body: { ...session, user: { ...session.user, role: "viewer" } } },
      "GET /api/v1/alerts": page([alert("1")]),
      "GET /api/v1/alerts/rules": { status: 503, body: unreachable },
    });
    renderAt("/alerts");
    expect(await screen.findByText("Transactions could not be applied.")).toBeVisible();
    expect(screen.queryByRole("button", { name: "Acknowledge…" })).toBeNull();
    await userEvent.click(screen.getByRole("tab", { name: "Alert rules" }));
    expect(await screen.findByRole("alert")).toHaveTextContent("The control store cannot be reached");
  });

  it("tells an alert that is over as past: when it ended, and how it was", async () => {
    const over = alert("1", {
      state: "resolved",
      severity: "critical",
      resolved_at: "2026-11-21T00:01:15Z",
      resolution: "cleared",
    });
    stubApi({
      ...routes,
      "GET /api/v1/alerts": page([over, alert("2", { ...over, id: "2", resolution: null })]),
    });
    renderAt("/alerts?tab=history");
    const table = await screen.findByRole("table", { name: "History of alerts" });
    const [, recovered, other] = within(table).getAllByRole("row");
    expect(recovered).toHaveTextContent(/Recovered2026-11-2[01] .*:01:15/);
    expect(recovered).toHaveTextContent("As it was then: 1 transaction is parked");
    const tone = within(recovered as HTMLElement)
      .getByText("Critical")
      .closest(".mantine-Badge-root");
    expect(tone?.querySelector("svg")).toHaveAttribute("stroke", "var(--tone-quiet)");
    expect(other).toHaveTextContent("Not applicable");
    await expectNoAxeViolations();
  });

  it("keeps of a rule only what differs from the default", async () => {
    const requests = stubApi({ ...routes, "PUT /api/v1/alerts/rules/latency": { body: rule } });
    renderAt("/alerts?tab=rules");
    await userEvent.click(await screen.findByRole("button", { name: /^Edit Latency/ }));
    const field = await screen.findByLabelText("Latency p99, above");
    await userEvent.clear(field);
    await userEvent.type(field, "5");
    await userEvent.click(screen.getByRole("button", { name: "Save" }));
    await waitFor(() => expect(requests.some(({ method }) => method === "PUT")).toBe(true));
    const sent = requests.find(({ method }) => method === "PUT");
    expect(sent?.headers.get("If-Match")).toBe('"0"');
    expect(await sent?.json()).toEqual({
      enabled: null,
      severity: null,
      hold_seconds: null,
      thresholds: { latency_seconds: 5 },
    });
  });

  it("tests a channel and says why it failed", async () => {
    const error = { code: "http_404", message: "The receiver answered 404.", cure: "Correct the address." };
    const delivery = { channel_name: "on call", took_ms: 3, error };
    stubApi({ ...routes, "POST /api/v1/alerts/channels/channel1/test": { body: delivery } });
    renderAt("/alerts?tab=channels");
    await userEvent.click(await screen.findByRole("button", { name: "Test on call" }));
    const problem = await screen.findByRole("alert");
    expect(problem).toHaveTextContent("The test did not reach on call");
    expect(problem).toHaveTextContent("Cure: Correct the address.");
    const table = screen.getByRole("table", { name: "Channels" });
    expect(within(table).getByText("https://hooks.example.org/")).toBeVisible();
  });
});

describe("words and forms", () => {
  it("puts what is urgent first", () => {
    const order = byUrgency([
      alert("1", { state: "pending" }),
      alert("2", { severity: "critical", acknowledged_at: AT }),
      alert("3"),
      alert("4", { severity: "critical" }),
    ]);
    expect(order.map(({ id }) => id)).toEqual(["4", "3", "2", "1"]);
  });

  it("shows thresholds in their units", () => {
    expect(inUnit(1 << 20, "bytes")).toBe("1\u00a0MiB");
    expect(inUnit(90, "seconds")).toBe("1 min 30\u00a0s");
    expect(inUnit(10, "percent")).toBe("10\u00a0%");
    expect(inUnit(16_766_100, "transactions")).toBe("16\u202f766\u202f100\u00a0transactions");
  });

  it("finds what a channel lacks and keeps a stored secret", () => {
    expect(channelFaults(emptyChannel)).toEqual({ name: expect.any(String), url: expect.any(String) });
    const mail = { ...emptyChannel, kind: "email", name: "m", host: "h", sender: "a@b" } as const;
    expect(Object.keys(channelFaults(mail))).toEqual(["recipients"]);
    expect(channelFaults({ ...mail, recipients: ["c@d"] })).toEqual({});
    expect(toChannelUpdate({ ...mail, recipients: ["c@d"] })).not.toHaveProperty("secret");
    expect(toChannelCreate({ ...emptyChannel, kind: "log", name: "l", secret: "x" })).toMatchObject({
      secret: "",
    });
  });
});
