import { describe, expect, it } from "vitest";
import { engine, initialCopy, parallelism, receivingEngine } from "@/test/data";
import {
  emptyWizard,
  furthestStep,
  stepFault,
  steps,
  toStreamCreate,
  type WizardFacts,
  type WizardState,
  withSource,
} from "./wizard-state";

const facts: WizardFacts = {
  engines: [engine],
  replicable: 3,
  preflightReady: true,
  definitions: [parallelism, initialCopy],
};
const done: WizardState = { ...emptyWizard, sourceId: "source01", destinationId: "dest0001", name: "a to b" };

describe("the wizard goes on", () => {
  it("from every step when all is answered", () => {
    for (const step of steps) expect(stepFault(step, done, facts)).toBeNull();
    expect(furthestStep(done, facts)).toBe(steps.length - 1);
  });

  it.each([
    ["source", { sourceId: null }, {}, /source/],
    ["destination", { destinationId: null }, {}, /destination/],
    ["destination", { destinationId: "source01" }, {}, /two databases/],
    ["destination", {}, { engines: [] }, /No engine/],
    ["destination", {}, { engines: [engine, receivingEngine] }, /Choose the engine/],
    ["tables", { rules: { include: [], exclude: [] } }, {}, /include rule/],
    ["tables", {}, { replicable: null }, /Wait/],
    ["tables", {}, { replicable: 0 }, /no table/],
    ["preflight", {}, { preflightReady: null }, /Wait/],
    ["preflight", {}, { preflightReady: false }, /Cure/],
    ["parameters", { parameters: { parallelism: 1000 } }, {}, /range/],
    ["review", { name: "  " }, {}, /name/],
  ] as const)("not from %s with %o and %o", (step, answer, fact, reason) => {
    const state = { ...done, ...answer } as WizardState;
    expect(stepFault(step, state, { ...facts, ...fact })).toMatch(reason);
    expect(furthestStep(state, { ...facts, ...fact })).toBeLessThanOrEqual(steps.indexOf(step));
  });

  it("with the engine chosen when there are several", () => {
    expect(
      stepFault(
        "destination",
        { ...done, engineId: "engine02" },
        { ...facts, engines: [engine, receivingEngine] },
      ),
    ).toBeNull();
  });

  it("over two engines when the one that applies can be reached", () => {
    const known = { ...engine, identity: receivingEngine.identity };
    const two = { ...done, engineId: "engine01", applyEngineId: "engine02" };
    expect(stepFault("destination", two, { ...facts, engines: [known, receivingEngine] })).toBeNull();
    expect(stepFault("destination", two, { ...facts, engines: [engine, receivingEngine] })).toMatch(
      /engine-1 has no identity/,
    );
    const back = { ...done, engineId: "engine02", applyEngineId: "engine01" };
    expect(stepFault("destination", back, { ...facts, engines: [known, receivingEngine] })).toMatch(
      /where others reach engine-1/,
    );
  });
});

describe("changing the source", () => {
  it("forgets what belonged to the old one", () => {
    const changed = withSource({ ...done, rules: { include: [], exclude: [] } }, "dest0001");
    expect(changed).toMatchObject({ sourceId: "dest0001", destinationId: null, rules: emptyWizard.rules });
    expect(withSource(done, "source01")).toBe(done);
  });
});

describe("the request", () => {
  it("says where capture and apply run", () => {
    const one = toStreamCreate({ ...done, engineId: "engine01", applyEngineId: "engine01" }, []);
    expect(one).toMatchObject({ engine_id: "engine01" });
    expect(one).not.toHaveProperty("apply_engine_id");
    const two = toStreamCreate({ ...done, engineId: "engine01", applyEngineId: "engine02" }, []);
    expect(two).toMatchObject({ capture_engine_id: "engine01", apply_engine_id: "engine02" });
    expect(two).not.toHaveProperty("engine_id");
  });

  it("carries only parameters that differ from their defaults", () => {
    const state = { ...done, parameters: { parallelism: 8, initial_copy: true } };
    expect(toStreamCreate(state, facts.definitions)).toEqual({
      name: "a to b",
      source_id: "source01",
      destination_id: "dest0001",
      rules: emptyWizard.rules,
      parameters: { parallelism: 8 },
      start: true,
    });
  });
});
