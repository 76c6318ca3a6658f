import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it, vi } from "vitest";
import { engine, receivingEngine } from "@/test/data";
import { expectNoAxeViolations, renderUi } from "@/test/render";
import { EngineChoice } from "./engine-choice";

const warehouse = { id: "dest0001", name: "warehouse" };
const choice = (
  engines = [engine, receivingEngine],
  applyEngineIds: Record<string, string> = {},
  destinations = [warehouse],
) => {
  const onChange = vi.fn();
  renderUi(
    <EngineChoice
      engines={engines}
      engineId="engine01"
      destinations={destinations}
      applyEngineIds={applyEngineIds}
      onChange={onChange}
    />,
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
    expect(screen.getByText(/until you choose another one/)).toBeVisible();
    await expectNoAxeViolations();
  });

  it("takes the second engine back with the choice of one", async () => {
    const onChange = choice(undefined, { dest0001: "engine02" });
    expect(screen.getByRole("combobox", { name: "Applies" })).toHaveValue("engine-2 (Online)");
    await userEvent.click(screen.getByRole("radio", { name: "One engine captures and applies" }));
    expect(onChange).toHaveBeenCalledWith("engine01", {});
  });

  it("asks for each of several destinations", () => {
    choice(undefined, { dest0002: "engine02" }, [warehouse, { id: "dest0002", name: "reports" }]);
    expect(screen.getByRole("combobox", { name: "Applies at warehouse" })).toHaveValue("engine-1 (Online)");
    expect(screen.getByRole("combobox", { name: "Applies at reports" })).toHaveValue("engine-2 (Online)");
  });
});
