import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";
import { expectNoAxeViolations, renderUi } from "@/test/render";
import { CaptureChoice } from "./capture-choice";
import { emptyWizard, toStreamCreate } from "./wizard-state";

it("begins with logical decoding and offers log mining, with what it needs", async () => {
  const onChange = vi.fn();
  renderUi(<CaptureChoice value={emptyWizard.captureKind} onChange={onChange} />);
  expect(screen.getByRole("radio", { name: "Logical decoding" })).toBeChecked();
  expect(screen.getByText(/Needs full_page_writes/)).toBeVisible();
  await userEvent.click(screen.getByRole("radio", { name: "Log mining" }));
  expect(onChange).toHaveBeenCalledExactlyOnceWith("wal");
  await expectNoAxeViolations();
});

it("is part of the request", () => {
  expect(toStreamCreate(emptyWizard, []).capture_kind).toBe("logical");
  expect(toStreamCreate({ ...emptyWizard, captureKind: "wal" }, []).capture_kind).toBe("wal");
});
