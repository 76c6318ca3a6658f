import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import {
  destinationInWords,
  healthInWords,
  reasonBeside,
  sentenceCase,
  stateInWords,
  streamInWords,
} from "./states";

describe("states of the engine's contract", () => {
  it.each([
    ["INITIALIZING", "busy"],
    ["CAPTURING CHANGES", "good"],
    ["WAITING FOR WAL", "quiet"],
    ["PAUSED FOR FLOW CONTROL", "warning"],
    ["SHUTTING DOWN", "busy"],
    ["ABORTING", "bad"],
    ["NORMAL", "good"],
    ["IN FLOW CONTROL: TOO MANY UNBROWSED MESSAGES", "warning"],
    ["IN FLOW CONTROL: INSUFFICIENT MEMORY", "warning"],
    ["IDLE", "quiet"],
    ["DEQUEUE MESSAGES", "good"],
    ["SPILLING", "warning"],
    ["APPLYING", "good"],
    ["SHUTTING DOWN CLEANLY", "busy"],
    ["EXECUTE TRANSACTION", "good"],
    ["WAIT DEPENDENCY", "warning"],
    ["WAIT RETRY", "warning"],
    ["WAIT COMMIT", "quiet"],
    ["ROLLBACK TRANSACTION", "bad"],
    ["INSTANTIATING", "busy"],
    ["CATCHING UP", "busy"],
    ["RETRYING", "warning"],
    ["ABORTED", "bad"],
  ])("%s has a tone, a label and a definition", (state, tone) => {
    const words = stateInWords(state);
    expect(words.tone).toBe(tone);
    expect(words.label.toUpperCase()).toBe(state);
    expect(words.definition).not.toMatch(/does not know/);
  });

  const contract = JSON.parse(readFileSync("../engine/contract/component-states.json", "utf8"));
  it.each(Object.entries<string[]>(contract.states))("knows every state of %s", (_, states) => {
    for (const state of states) expect(stateInWords(state).definition).not.toMatch(/does not know/);
  });

  it("keeps abbreviations", () => {
    expect(stateInWords("WAITING FOR WAL").label).toBe("Waiting for WAL");
    expect(sentenceCase("database_unreachable")).toBe("Database unreachable");
  });

  it("shows a state that it does not know instead of hiding it", () => {
    expect(stateInWords("DREAMING")).toMatchObject({ label: "Dreaming", tone: "quiet" });
  });

  it("says unknown when nothing was reported", () => {
    expect(stateInWords(null).label).toBe("Unknown");
  });

  it("reads operations' states, which are lower case", () => {
    expect(stateInWords("running").tone).toBe("busy");
    expect(stateInWords("failed").tone).toBe("bad");
  });
});

describe("the reason beside a state", () => {
  it.each([
    ["Replicating.", "REPLICATING", null],
    ["Catching up with the source.", "CATCHING UP", "Catching up with the source."],
    [
      "Stopped. The source keeps its WAL until it starts again.",
      "STOPPED",
      "Stopped. The source keeps its WAL until it starts again.",
    ],
    [
      "3 transactions are parked in the error queue.",
      "REPLICATING",
      "3 transactions are parked in the error queue.",
    ],
  ])("%s beside %s", (reason, state, shown) => {
    expect(reasonBeside(reason, state)).toBe(shown);
  });
});

describe("health", () => {
  it.each([
    ["ok", "Healthy", "good"],
    ["warning", "Attention", "warning"],
    ["error", "Failed", "bad"],
    ["unknown", "Unknown", "quiet"],
  ] as const)("%s is %s", (level, label, tone) => {
    expect(healthInWords(level)).toMatchObject({ label, tone });
  });
});

it("does not call well what parks or stands still", () => {
  expect(stateInWords("PARKING").tone).toBe("bad");
  expect(stateInWords("STALLED").tone).toBe("warning");
});

it("says Stopping until the engine has stopped", () => {
  expect(healthInWords("stopped", "ENABLED").label).toBe("Stopping");
  expect(healthInWords("stopped", "DISABLED").label).toBe("Stopped");
  expect(healthInWords("stopped", "DISABLED", "PAUSED").label).toBe("Paused");
  expect(healthInWords("warning", "DISABLED", "PAUSED").label).toBe("Attention");
  expect(healthInWords("ok", "ENABLED").label).toBe("Healthy");
});

describe("a stream whose capture waits for room", () => {
  const at = (name: string, state: "FULL" | "ON DISK" | null, status: "ENABLED" | "DROPPED" = "ENABLED") => ({
    status,
    state: "REPLICATING" as const,
    backlog: state && { state },
    database: { name },
  });
  const full = [
    at("north", "FULL"),
    at("south", "ON DISK"),
    at("east", "FULL"),
    at("gone", "FULL", "DROPPED"),
  ];

  it("does not replicate, and says for whom it waits", () => {
    expect(streamInWords({ state: "REPLICATING", destinations: full })).toMatchObject({
      label: "Waits for room at north and east",
      tone: "bad",
    });
    expect(streamInWords({ state: "CATCHING UP", destinations: full }).label).toMatch(/^Waits for room/);
    expect(streamInWords({ state: "STALLED", destinations: full }).label).toMatch(/^Waits for room/);
    expect(streamInWords({ state: "STALLED", destinations: [] }).label).toBe("Stalled");
    expect(streamInWords({ state: "ABORTED", destinations: full }).label).toBe("Aborted");
    expect(streamInWords({ state: "REPLICATING", destinations: full.slice(1, 2) }).label).toBe("Replicating");
  });

  it("holds up the destinations that have room", () => {
    const [north, south] = full as [(typeof full)[number], (typeof full)[number]];
    expect(destinationInWords(north, full).label).toBe("Replicating");
    expect(destinationInWords(south, full).label).toBe("Waits for room at north and east");
    expect(destinationInWords(at("only", null), [at("only", null)]).label).toBe("Replicating");
  });
});
