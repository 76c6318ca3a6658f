import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it, vi } from "vitest";
import { engine, receivingEngine } from "@/test/data";
import { expectNoAxeViolations, renderUi } from "@/test/render";
import { EngineChoice } from "./engine-choice";

const choice = (engines = [engine, receivingEngine], applyEngineId: string | null = null) => {
  const onChange = vi.fn();
  renderUi(
    <EngineChoice engines={engines} engineId="engine01" applyEngineId={applyEngineId} onChange={onChange} />,
  );
  return onChange;
};

describe("EngineChoice", () => {
  it("asks nothing when there is one engine", () => {
    choice([engine]);
    expect(screen.queryByRole("radio")).not.toBeInTheDocument();
  });

  it("begins with one engine for both, and offers two in plain words", async () => {
    choice();
    expect(screen.getByRole("radio", { name: "One engine captures and applies" })).toBeChecked();
    await userEvent.click(screen.getByRole("radio", { name: "One engine captures, another applies" }));
    expect(screen.getByRole("combobox", { name: "Captures" })).toHaveValue("engine-1 (Online)");
    expect(screen.getByRole("combobox", { name: "Applies" })).toHaveValue("");
    expect(screen.getByText(/Until both are chosen/)).toBeVisible();
    await expectNoAxeViolations();
  });

  it("takes the second engine back with the choice of one", async () => {
    const onChange = choice(undefined, "engine02");
    expect(screen.getByRole("combobox", { name: "Applies" })).toHaveValue("engine-2 (Online)");
    await userEvent.click(screen.getByRole("radio", { name: "One engine captures and applies" }));
    expect(onChange).toHaveBeenCalledWith("engine01", null);
  });
});
