import { screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { engine } from "@/test/data";
import { expectNoAxeViolations, renderUi, stubApi } from "@/test/render";
import { version as consoleVersion } from "../../../package.json";
import { VersionNote } from "./version-note";

function show(controlPlane: string, engineVersion: string) {
  const items = [{ ...engine, version: engineVersion }];
  stubApi({
    "GET /healthz": { body: { status: "ok", version: controlPlane } },
    "GET /api/v1/engines": { body: { items, next_cursor: null } },
  });
  renderUi(<VersionNote />);
}

it("shows the product's version", async () => {
  show(consoleVersion, consoleVersion);
  expect(await screen.findByText(`Thalweg ${consoleVersion}`)).toBeVisible();
  expect(screen.queryByRole("status")).toBeNull();
});

it("says which part is of which version, and what to do", async () => {
  show("99.0.0", "98.0.0");
  const note = await screen.findByRole("status", { name: "Versions" });
  expect(note).toHaveTextContent(`Console: ${consoleVersion}`);
  expect(note).toHaveTextContent("Control plane: 99.0.0");
  expect(await screen.findByText("Engine engine-1: 98.0.0")).toBeVisible();
  expect(note).toHaveTextContent("Reload this page");
  expect(note).toHaveTextContent("Upgrade engine engine-1");
  await expectNoAxeViolations();
});
