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
const done: WizardState = {
  ...emptyWizard,
  sourceId: "source01",
  destinationIds: ["dest0001"],
  name: "a to b",
};

describe("the wizard goes on", () => {
  it("from every step when all is answered", () => {
    for (const step of steps) expect(stepFault(step, done, facts)).toBeNull();
    expect(furthestStep(done, facts)).toBe(steps.length - 1);
  });

  it.each([
    ["source", { sourceId: null }, {}, /source/],
    ["destination", { destinationIds: [] }, {}, /destination/],
    ["destination", { destinationIds: ["source01"] }, {}, /two databases/],
    ["destination", {}, { engines: [] }, /No engine/],
    ["destination", {}, { engines: [engine, receivingEngine] }, /Choose the engine/],
    ["tables", { rules: { include: [], exclude: [] } }, {}, /table pattern/],
    ["tables", {}, { replicable: null }, /Wait/],
    ["tables", {}, { replicable: 0 }, /no table/],
    ["preflight", {}, { preflightReady: null }, /Wait/],
    ["preflight", {}, { preflightReady: false }, /failed checks/],
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
    const two = { ...done, engineId: "engine01", applyEngineIds: { dest0001: "engine02" } };
    expect(stepFault("destination", two, { ...facts, engines: [known, receivingEngine] })).toBeNull();
    expect(stepFault("destination", two, { ...facts, engines: [engine, receivingEngine] })).toMatch(
      /engine-1 has no identity/,
    );
    const back = { ...done, engineId: "engine02", applyEngineIds: { dest0001: "engine01" } };
    expect(stepFault("destination", back, { ...facts, engines: [known, receivingEngine] })).toMatch(
      /where to reach engine-1/,
    );
  });
});

describe("several destinations", () => {
  const several = { ...done, destinationIds: ["dest0001", "dest0002"] };

  it("go into one request, each with its engine where it has another", () => {
    const state = { ...several, engineId: "engine01", applyEngineIds: { dest0002: "engine02", gone: "x" } };
    expect(toStreamCreate(state, []).destinations).toEqual([
      { database_id: "dest0001" },
      { database_id: "dest0002", engine_id: "engine02" },
    ]);
  });

  it("carry the rules of their own", () => {
    const row_rules = [{ scope: "global" as const, positive: [] }];
    const destinationRules = { dest0002: row_rules, gone: row_rules };
    expect(toStreamCreate({ ...several, destinationRules }, []).destinations).toEqual([
      { database_id: "dest0001" },
      { database_id: "dest0002", row_rules },
    ]);
    expect(withSource({ ...several, destinationRules }, "other").destinationRules).toEqual({});
  });

  it("cannot both be received by one other engine", () => {
    const known = { ...engine, identity: receivingEngine.identity };
    const state = {
      ...several,
      engineId: "engine01",
      applyEngineIds: { dest0001: "engine02", dest0002: "engine02" },
    };
    expect(stepFault("destination", state, { ...facts, engines: [known, receivingEngine] })).toMatch(
      /engine-2 can receive for only one destination/,
    );
  });
});

describe("changing the source", () => {
  it("forgets what belonged to the old one", () => {
    const changed = withSource({ ...done, rules: { include: [], exclude: [] } }, "dest0001");
    expect(changed).toMatchObject({ sourceId: "dest0001", destinationIds: [], rules: emptyWizard.rules });
    expect(withSource(done, "source01")).toBe(done);
  });
});

describe("the request", () => {
  it("says where capture and apply run", () => {
    const body = toStreamCreate(
      { ...done, engineId: "engine01", applyEngineIds: { dest0001: "engine01" } },
      [],
    );
    expect(body).toMatchObject({
      capture_engine_id: "engine01",
      destinations: [{ database_id: "dest0001" }],
    });
    const two = toStreamCreate(
      { ...done, engineId: "engine01", applyEngineIds: { dest0001: "engine02" } },
      [],
    );
    expect(two.destinations).toEqual([{ database_id: "dest0001", engine_id: "engine02" }]);
  });

  it("carries only parameters that differ from their defaults", () => {
    const state = { ...done, parameters: { parallelism: 8, initial_copy: true } };
    expect(toStreamCreate(state, facts.definitions)).toEqual({
      name: "a to b",
      source_id: "source01",
      destinations: [{ database_id: "dest0001" }],
      rules: emptyWizard.rules,
      capture_kind: "logical",
      parameters: { parallelism: 8 },
      start: true,
    });
  });
});
