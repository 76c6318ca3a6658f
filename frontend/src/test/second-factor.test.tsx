// A second factor: at the login, on the account's page, demanded, and reset by an admin.
import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it } from "vitest";
import { setSecondFactorDemandedHandler } from "@/api/client";
import { keys } from "@/api/keys";
import { session } from "./data";
import { expectNoAxeViolations, type Routes, renderAt, stubApi, stubEvents } from "./render";

const page = (items: unknown[]) => ({ body: { items, next_cursor: null } });
const problem = (status: number, code: string, title: string) => ({
  status,
  body: {
    type: `urn:thalweg:problem:${code}`,
    title,
    status,
    detail: title,
    instance: "/",
    code,
    cure: `Cure of ${code}.`,
    sql: null,
    errors: [],
  },
});
const OWN = "/api/v1/users/user0001";
const off = { enabled: false, since: null, recovery_codes_left: 0, demanded: false };
const on = { enabled: true, since: "2026-11-22T12:00:00Z", recovery_codes_left: 9, demanded: false };
const draft = {
  secret: "K3VEXAMPLEEXAMPLEEXAMPLEEXAMPLE2",
  uri: "otpauth://totp/Thalweg:admin",
  qr_code: "data:image/svg+xml,x",
};
const codes = Array.from({ length: 10 }, (_, number) => `code-${number}`);
const routes: Routes = {
  "GET /api/v1/session": { body: session },
  "GET /api/v1/overview": { body: { streams: [], engines_online: 1, engines_total: 1, live: true } },
  "GET /api/v1/overview/rates": { body: { streams: [], live: true } },
  "GET /api/v1/databases": page([]),
  "GET /api/v1/engines": page([]),
  "GET /api/v1/operations": page([]),
  [`GET ${OWN}/second-factor`]: { body: off },
};
const button = (name: string) => screen.findByRole("button", { name });
const body = async (requests: Request[], path: string) =>
  (await requests
    .findLast((request) => request.method !== "GET" && new URL(request.url).pathname === path)
    ?.clone()
    .json()) as unknown;

beforeEach(stubEvents);

describe("the login's second step", () => {
  async function toTheCode(more: Routes) {
    const requests = stubApi({
      ...routes,
      "GET /api/v1/session": problem(401, "authentication_required", "You are not logged in"),
      "POST /api/v1/session": problem(401, "second_factor_required", "A code of the second factor is needed"),
      ...more,
    });
    renderAt("/settings");
    await userEvent.type(await screen.findByLabelText("User name"), "admin");
    await userEvent.type(screen.getByLabelText("Password"), "right");
    await userEvent.click(await button("Log in"));
    return { requests, code: await screen.findByLabelText("Code") };
  }

  it("asks for a code, not as a failure, and leads to the page that was asked for", async () => {
    const { requests, code } = await toTheCode({
      "POST /api/v1/session:verify-code": { status: 201, body: session },
    });
    expect(screen.queryByRole("alert")).toBeNull();
    expect(code).toHaveFocus();
    expect(screen.queryByLabelText("Password")).toBeNull();
    await expectNoAxeViolations();
    await userEvent.type(code, " 492039 {Enter}");
    expect(await screen.findByRole("heading", { level: 1, name: "Settings" })).toBeVisible();
    expect(await body(requests, "/api/v1/session:verify-code")).toEqual({ code: "492039" });
  });

  it("shows a wrong code's problem and takes another", async () => {
    const { code } = await toTheCode({
      "POST /api/v1/session:verify-code": problem(401, "wrong_code", "The code is wrong"),
    });
    await userEvent.type(code, "000000{Enter}");
    expect(await screen.findByRole("alert")).toHaveTextContent("Cure: Cure of wrong_code.");
    expect(code).toHaveValue("");
    expect(code).toHaveFocus();
  });

  it("leads back to the password when the login took too long", async () => {
    const { code } = await toTheCode({
      "POST /api/v1/session:verify-code": problem(401, "login_expired", "The login must be started again"),
    });
    await userEvent.type(code, "000000{Enter}");
    expect(await screen.findByRole("alert")).toHaveTextContent("The login must be started again");
    await userEvent.type(code, "1");
    expect(await button("Verify")).toBeDisabled();
    await userEvent.click(await button("Back to the password"));
    expect(await screen.findByLabelText("Password")).toHaveValue("");
    expect(screen.queryByRole("alert")).toBeNull();
  });
});

describe("the account's page", () => {
  it("sets one up: password, QR code and secret, code, recovery codes", async () => {
    let state: object = off;
    const requests = stubApi({
      ...routes,
      [`GET ${OWN}/second-factor`]: () => ({ body: state }),
      [`POST ${OWN}:prepare-second-factor`]: { body: draft },
      [`POST ${OWN}:confirm-second-factor`]: () => {
        state = { ...on, recovery_codes_left: 10 };
        return { body: { codes } };
      },
    });
    renderAt("/settings");
    await userEvent.click(await button("Set up"));
    const dialog = within(await screen.findByRole("dialog", { name: "Set up a second factor" }));
    expect(dialog.queryByLabelText("Code")).toBeNull();
    await userEvent.type(dialog.getByLabelText("Current password"), "mine{Enter}");
    expect(await dialog.findByRole("img", { name: /^QR code/ })).toHaveAttribute("src", draft.qr_code);
    expect(dialog.getByRole("region", { name: "Secret" })).toHaveTextContent(draft.secret);
    expect(await body(requests, `${OWN}:prepare-second-factor`)).toEqual({
      current_password: "mine",
      code: null,
    });
    await expectNoAxeViolations();
    await userEvent.type(dialog.getByLabelText("Code from the app"), "492039{Enter}");
    const shown = await dialog.findByRole("region", { name: "Recovery codes" });
    for (const code of codes) expect(shown).toHaveTextContent(code);
    const download = dialog.getByRole("link", { name: "Download" });
    expect(decodeURIComponent(download.getAttribute("href") ?? "")).toContain(codes.join("\n"));
    await userEvent.click(dialog.getByRole("button", { name: "I have saved them" }));
    expect(await screen.findByText(/10 recovery codes are left/)).toBeVisible();
  });

  it("asks for the password and a code to switch it off", async () => {
    const requests = stubApi({
      ...routes,
      [`GET ${OWN}/second-factor`]: { body: { ...on, recovery_codes_left: 1 } },
      [`POST ${OWN}:remove-second-factor`]: problem(
        403,
        "permission_denied",
        "Your role does not allow this",
      ),
    });
    renderAt("/settings");
    expect(await screen.findByText(/1 recovery code is left\. Create new ones/)).toBeVisible();
    await userEvent.click(await button("Switch off"));
    const dialog = within(await screen.findByRole("dialog"));
    await userEvent.type(dialog.getByLabelText("Current password"), "mine");
    expect(dialog.getByRole("button", { name: "Switch off" })).toBeDisabled();
    await userEvent.type(dialog.getByLabelText("Code"), "492039{Enter}");
    expect(await dialog.findByRole("alert")).toHaveTextContent("Cure of permission_denied.");
    expect(await body(requests, `${OWN}:remove-second-factor`)).toEqual({
      current_password: "mine",
      code: "492039",
    });
  });

  it("offers no switching off where one is demanded", async () => {
    stubApi({ ...routes, [`GET ${OWN}/second-factor`]: { body: { ...on, demanded: true } } });
    renderAt("/settings");
    expect(await button("Another device")).toBeVisible();
    expect(screen.queryByRole("button", { name: "Switch off" })).toBeNull();
    expect(screen.getByText(/An admin requires a second factor/)).toBeVisible();
  });
});

describe("where one is demanded", () => {
  it("there is only the page on which to set it up", async () => {
    let missing = true;
    const requests = stubApi({
      ...routes,
      "GET /api/v1/session": () => ({ body: { ...session, second_factor_missing: missing } }),
      [`POST ${OWN}:prepare-second-factor`]: { body: draft },
      [`POST ${OWN}:confirm-second-factor`]: () => {
        missing = false;
        return { body: { codes } };
      },
    });
    renderAt("/settings");
    expect(await screen.findByRole("heading", { level: 1, name: "Set up a second factor" })).toBeVisible();
    expect(screen.queryByRole("navigation")).toBeNull();
    await expectNoAxeViolations();
    await userEvent.type(screen.getByLabelText("Current password"), "mine{Enter}");
    const code = await screen.findByLabelText("Code from the app");
    expect(code).toHaveFocus();
    await userEvent.type(code, "492039{Enter}");
    // The recovery codes stay until they are kept, though everything is open by then.
    expect(await screen.findByRole("region", { name: "Recovery codes" })).toHaveTextContent("code-9");
    const asked = requests.map((request) => new URL(request.url).pathname);
    expect(asked.filter((path) => !path.startsWith(OWN))).toEqual(["/api/v1/session"]);
    await userEvent.click(await button("I have saved them"));
    expect(await screen.findByRole("heading", { level: 1, name: "Settings" })).toBeVisible();
  });

  it("an open console finds out by the first refusal", async () => {
    let missing = false;
    stubApi({
      ...routes,
      "GET /api/v1/session": () => ({ body: { ...session, second_factor_missing: missing } }),
      "GET /api/v1/tokens": () => {
        missing = true;
        return problem(403, "second_factor_demanded", "A second factor must be set up first");
      },
    });
    const { client } = renderAt("/settings");
    setSecondFactorDemandedHandler(() => void client.invalidateQueries({ queryKey: keys.session }));
    await userEvent.click(await screen.findByRole("tab", { name: "API tokens" }));
    expect(await screen.findByRole("heading", { level: 1, name: "Set up a second factor" })).toBeVisible();
    setSecondFactorDemandedHandler(() => {});
  });
});

describe("an admin", () => {
  const ada = { ...session.user, id: "user0002", name: "ada", role: "viewer", second_factor: true };
  const policy = { require_second_factor: "nobody", etag: '"1"' };

  it("resets somebody else's, by name", async () => {
    const requests = stubApi({
      ...routes,
      "GET /api/v1/users": page([session.user, ada]),
      "GET /api/v1/access-policy": { body: policy },
      "POST /api/v1/users/user0002:reset-second-factor": { status: 204 },
    });
    renderAt("/settings?tab=users");
    const [reset, ...others] = await screen.findAllByText("Reset second factor");
    expect(others).toEqual([]);
    await userEvent.click(reset as HTMLElement);
    const dialog = within(await screen.findByRole("dialog", { name: "Reset second factor" }));
    await userEvent.type(dialog.getByLabelText("Type ada to confirm"), "ada{Enter}");
    await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
    expect(requests.some((request) => request.url.endsWith("user0002:reset-second-factor"))).toBe(true);
  });

  it("demands one", async () => {
    let now = policy;
    const requests = stubApi({
      ...routes,
      "GET /api/v1/users": page([session.user, ada]),
      "GET /api/v1/access-policy": () => ({ body: now }),
      "PATCH /api/v1/access-policy": () => {
        now = { require_second_factor: "admins", etag: '"2"' };
        return { body: now };
      },
    });
    renderAt("/settings?tab=users");
    // By label and text: searching this page by role takes jsdom long.
    const choice = await screen.findByLabelText("Require a second factor of", { selector: "input" });
    await userEvent.click(choice);
    await userEvent.click(await screen.findByText("Admins"));
    await waitFor(() => expect(choice).toHaveValue("Admins"));
    expect(await body(requests, "/api/v1/access-policy")).toEqual({ require_second_factor: "admins" });
    expect(requests.find((request) => request.method === "PATCH")?.headers.get("If-Match")).toBe('"1"');
  });
});
