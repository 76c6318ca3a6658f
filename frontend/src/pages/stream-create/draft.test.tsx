import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it, vi } from "vitest";
import { database, engine, initialCopy, parallelism, session } from "@/test/data";
import { type Routes, renderAt, stubApi, stubEvents } from "@/test/render";
import { dropDraft, keepDraft, readDraft } from "./draft";
import { emptyWizard } from "./wizard-state";

const databases = [database("source01", "orders"), database("dest0001", "warehouse")];
const state = { ...emptyWizard, sourceId: "source01", destinationIds: ["dest0001"], name: "mine" };

const routes: Routes = {
  "GET /api/v1/session": { body: session },
  "GET /api/v1/alerts/counts": { body: { firing: 0, critical: 0, unacknowledged: 0, pending: 0 } },
  "GET /api/v1/databases": { body: { items: databases, next_cursor: null } },
  "GET /api/v1/engines": { body: { items: [engine], next_cursor: null } },
  "GET /api/v1/stream-parameters": { body: { parameters: [parallelism, initialCopy] } },
};

describe("a draft", () => {
  it("comes back as it was left, up to the checks, which are made again", () => {
    keepDraft({ state, active: 5 });
    expect(readDraft(databases)).toEqual({ state, active: 3 });
    keepDraft({ state, active: 2 });
    expect(readDraft(databases)?.active).toBe(2);
  });

  it("loses destinations that are gone, and is none without its source", () => {
    keepDraft({ state, active: 5 });
    expect(readDraft(databases.slice(0, 1))).toMatchObject({ state: { destinationIds: [] }, active: 1 });
    expect(readDraft(databases.slice(1))).toBeNull();
  });

  it("is none when it was dropped or cannot be read", () => {
    keepDraft({ state, active: 1 });
    dropDraft();
    expect(readDraft(databases)).toBeNull();
    localStorage.setItem("thalweg.stream-draft", "{");
    expect(readDraft(databases)).toBeNull();
  });

  it("opens the wizard where it was left, and is forgotten by Start over", async () => {
    stubEvents();
    stubApi(routes);
    keepDraft({ state, active: 1 });
    renderAt("/streams/new");
    expect(await screen.findByRole("region", { name: "Step 2 of 6: Destination" })).toBeVisible();
    expect(screen.getByText("Your draft, as you left it.")).toBeVisible();
    await userEvent.click(screen.getByRole("button", { name: "Start over" }));
    expect(screen.getByRole("region", { name: "Step 1 of 6: Source" })).toBeVisible();
    expect(localStorage.length).toBe(0);
  });
});

describe("a step of the wizard", () => {
  it("begins at its top, with the focus in it, whichever way it is reached", async () => {
    stubEvents();
    stubApi(routes);
    keepDraft({ state: { ...state, destinationIds: [] }, active: 0 });
    renderAt("/streams/new");
    await screen.findByRole("region", { name: "Step 1 of 6: Source" });
    const scrolled = vi.spyOn(window, "scrollTo").mockImplementation(() => {});
    await userEvent.click(screen.getByRole("button", { name: "Next" }));
    const second = screen.getByRole("region", { name: "Step 2 of 6: Destination" });
    expect(scrolled.mock.calls).toEqual([[{ top: 0 }]]);
    expect(second).toHaveFocus();
    await userEvent.click(screen.getByRole("button", { name: "Back" }));
    expect(screen.getByRole("region", { name: "Step 1 of 6: Source" })).toHaveFocus();
    expect(scrolled.mock.calls).toHaveLength(2);
    scrolled.mockRestore();
  });
});
