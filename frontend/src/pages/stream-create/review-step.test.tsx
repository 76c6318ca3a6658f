import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import { database } from "@/test/data";
import { renderUi } from "@/test/render";
import { ReviewStep } from "./review-step";
import { emptyWizard, toStreamCreate } from "./wizard-state";

it("shows the rules of the stream and of a destination, in words and as YAML", async () => {
  const small = { name: "small", condition: "amount < 50", subset: false, on_error: "stop" as const };
  const state = {
    ...emptyWizard,
    name: "a to b",
    captureKind: "wal" as const,
    destinationIds: ["dest0001"],
    rules: {
      ...emptyWizard.rules,
      row_rules: [{ scope: "schema" as const, schema: "public", positive: [] }],
    },
    destinationRules: { dest0001: [{ scope: "global" as const, positive: [small] }] },
  };
  renderUi(
    <ReviewStep
      body={toStreamCreate(state, [])}
      source={undefined}
      destinations={[{ database: database("dest0001", "warehouse"), engine: undefined }]}
      engine={undefined}
      preview={undefined}
      seen={[]}
      suggestedName=""
      onName={() => {}}
      onStart={() => {}}
    />,
  );
  expect(screen.getByText("the schema public: only some rows and changes.")).toBeVisible();
  expect(screen.getByText("At warehouse")).toBeVisible();
  expect(screen.getByText(/^log mining: the engine stages/)).toBeVisible();
  expect(screen.getByText("all tables: only some of these rows and changes.")).toBeVisible();
  await userEvent.click(screen.getByRole("radio", { name: "YAML" }));
  const text = document.querySelector("pre")?.textContent;
  expect(text).toContain(
    "  - database_id: dest0001\n    row_rules:\n      - scope: global\n        positive:\n",
  );
  expect(text).toContain("capture_kind: wal");
  expect(text).toContain('condition: "amount < 50"');
  expect(screen.getByText("thalweg streams create-from stream.yaml")).toBeVisible();
});
