import { expect, test } from "vitest";
import { verdictOf } from "./verdict";

const well = {
  health: { level: "ok" as const, reason: "Replicating." },
  status: "ENABLED" as const,
  desired_status: "ENABLED" as const,
  source: { name: "shop" },
  error: null,
  slot: null,
  destinations: [],
};
const lag = { bytes: null, age_seconds: null };
const path = {
  path_name: "orders → warehouse",
  verdict: "NO BOTTLENECK",
  bottleneck_identified: false,
  explanation: "No bottleneck.",
  top_finding: null,
  top_finding_code: null,
};
const slow = {
  ...path,
  path_name: "orders → reports",
  bottleneck_identified: true,
  explanation: "Apply is.",
};

const warned = (reason: string) => ({ ...well, health: { level: "warning" as const, reason } });
const indexed = {
  ...path,
  top_finding: "An index is missing",
  top_finding_code: "apply_missing_index" as const,
};

test("what is not well and what was found are one sentence", () => {
  const behind = warned("5 min behind its source.");
  expect(verdictOf(behind, [indexed])).toBe("5 min behind its source: An index is missing.");
  expect(verdictOf(behind, [path])).toBe("5 min behind its source.");
  expect(verdictOf(warned("5 min behind its source: 3.5 MiB of WAL are not applied."), [indexed])).toBe(
    "5 min behind its source: 3.5 MiB of WAL are not applied; An index is missing.",
  );
  const retried = {
    ...warned("The engine is retrying. No room: none."),
    error: { title: "No room", side: "engine" },
  };
  expect(verdictOf(retried, [indexed])).toBe("Retrying: No room; An index is missing.");
});

test("of several paths the found one is named, and who else is behind stays", () => {
  const behind = warned("reports is 5 min behind its source. Also behind: north (3 min).");
  expect(verdictOf(behind, [path, { ...indexed, path_name: "orders → reports" }])).toBe(
    "reports is 5 min behind its source: An index is missing (orders → reports). Also behind: north (3 min).",
  );
  const more = warned("reports is slow. Its disk is. And 2 more.");
  expect(verdictOf(more, [indexed])).toBe("reports is slow: An index is missing. And 2 more.");
});

test("a finding that only repeats health gives way to the next", () => {
  const down = { ...path, top_finding: "The stream has stopped", top_finding_code: "aborted" as const };
  const idle = { ...path, top_finding: "The source is idle", top_finding_code: "source_idle" as const };
  const stopped = warned("north has stopped.");
  expect(verdictOf(stopped, [down, idle])).toBe("north has stopped.");
  expect(verdictOf(stopped, [down, { ...indexed, path_name: "a → b" }])).toBe(
    "north has stopped: An index is missing (a → b).",
  );
});

test("a stream that does not run has one sentence; the alert and the figures say the rest", () => {
  const reason =
    "A row is missing in public.orders: no row. The problem is in the engine. Cure it. Its slot keeps 3 MiB.";
  const error = { title: "A row is missing", side: null };
  const aborted = {
    ...well,
    health: { level: "error" as const, reason },
    status: "ABORTED" as const,
    error,
  };
  expect(verdictOf(aborted, undefined)).toBe(
    "An error has stopped it: nothing is applied until that is cured.",
  );
  const lost = verdictOf({ ...aborted, slot: { wal_status: "lost" } }, undefined);
  expect(lost).toBe("Its slot is lost: it cannot go on and has to be created again.");
  const health = {
    level: "stopped" as const,
    reason: "db.1 is paused. Its slot keeps 3.5 MiB of WAL. In 2 h it is lost.",
  };
  expect(verdictOf({ ...well, health, status: "DISABLED" }, undefined)).toBe("db.1 is paused.");
  expect(verdictOf({ ...well, health, status: "DISABLED" }, [indexed])).toBe("db.1 is paused.");
  const retried = {
    ...well,
    error,
    health: { level: "warning" as const, reason: `The engine is retrying. ${reason}` },
  };
  expect(verdictOf(retried, undefined)).toBe("Retrying: A row is missing.");
  expect(verdictOf({ ...aborted, status: "UNKNOWN" }, undefined)).toBe(reason);
});

test("who holds a lock stands in the place of the advice to look for one", () => {
  const reason = "reports has applied nothing for 20 s though changes wait for it. Look for a lock.";
  const stands = { ...well, health: { level: "warning" as const, reason } };
  const finding = {
    top_finding: "Session 4711 (psql) holds a lock that the appliers need",
    top_finding_code: "apply_lock_contention" as const,
  };
  expect(verdictOf(stands, [path, { ...path, ...finding }])).toBe(
    "reports has applied nothing for 20 s though changes wait for it: Session 4711 (psql) holds a lock that the appliers need (orders → warehouse).",
  );
});

test("what is retried is named, with what is wrong and how far behind it is", () => {
  const error = { title: "The database cannot be reached", side: "destination" };
  const told = `${error.title}: Destination "warehouse": connection refused.`;
  const away = (name: string, age_seconds: number | null) => ({
    state: "RETRYING" as const,
    database: { name },
    error,
    tables: [],
    lag: { bytes: 4096, age_seconds },
  });
  const down = {
    ...warned(`The engine is retrying. ${told}`),
    error,
    destinations: [away("warehouse", 200)],
  };
  expect(verdictOf(down)).toBe("Retrying warehouse, 3\u00a0min behind: The database cannot be reached.");
  expect(verdictOf({ ...down, destinations: [away("warehouse", 40)] })).toBe(
    "Retrying warehouse: The database cannot be reached.",
  );
  const sourceDown = { ...down, error: { ...error, side: "source" } };
  expect(verdictOf(sourceDown)).toBe("Retrying shop: The database cannot be reached.");
  const ofSeveral = (reason: string, ...destinations: (typeof down)["destinations"]) =>
    verdictOf({ ...down, ...warned(reason), error: null, destinations });
  const well = { ...away("south", 0), state: "REPLICATING" as const, error: null };
  expect(
    ofSeveral(
      `The engine is retrying db.1; south goes on. ${told} And 1 more.`,
      ...([away("db.1", 7300), well] as (typeof down)["destinations"]),
    ),
  ).toBe("Retrying db.1, 2 h 1\u00a0min behind: The database cannot be reached; south goes on. And 1 more.");
  expect(
    ofSeveral(`The engine is retrying north and south. ${told}`, away("north", 90), away("south", 90)),
  ).toBe("Retrying north and south: The database cannot be reached.");
});

test("what the alerts below tell is not repeated", () => {
  const reason = "north has stopped; south goes on. Its disk is full: no space left. And 1 more.";
  const error = { title: "Its disk is full", side: null };
  const north = { state: "ABORTED" as const, database: { name: "north" }, error, tables: [], lag };
  const failed = { ...well, health: { level: "error" as const, reason }, destinations: [north] };
  expect(verdictOf(failed, undefined)).toBe("north has stopped; south goes on. And 1 more.");
  const cure = "Copy the table again.";
  const tables = [{ trouble: { cure } }];
  const troubled = { ...failed, destinations: [{ ...north, error: null, tables }] };
  const health = { level: "error" as const, reason: `It was replaced. ${cure}` };
  expect(verdictOf({ ...troubled, health }, undefined)).toBe("It was replaced.");
  expect(verdictOf(troubled, undefined)).toBe(reason);
});

test("the findings' verdict is the stream's, and names its path where there are several", () => {
  expect(verdictOf(well, undefined)).toBe("Replicating.");
  expect(verdictOf(well, [path])).toBe("No bottleneck.");
  expect(verdictOf(well, [{ ...path, top_finding: "An index is missing" }])).toBe("An index is missing.");
  expect(verdictOf(well, [path, slow])).toBe("orders → reports: Apply is.");
  expect(verdictOf(well, [slow, { ...path, top_finding: "An index is missing" }])).toBe(
    "orders → warehouse: An index is missing.",
  );
});

test("what concerns the source names no destination", () => {
  const idle = { ...path, top_finding: "The source is idle", top_finding_code: "source_idle" as const };
  expect(verdictOf(well, [idle, { ...idle, path_name: "orders → reports" }])).toBe("The source is idle.");
});

test("paused destinations are named beside the findings", () => {
  const own = { error: null, tables: [], lag };
  const paused = (name: string) => ({ ...own, state: "PAUSED" as const, database: { name } });
  const running = { ...own, state: "REPLICATING" as const, database: { name: "reports" } };
  const rests = { ...path, verdict: "PAUSED", explanation: "It is paused." };
  expect(verdictOf({ ...well, destinations: [running, paused("multi")] }, [rests, path])).toBe(
    "No bottleneck. multi is paused.",
  );
  expect(verdictOf({ ...well, destinations: [paused("a"), paused("b"), paused("c")] }, [path])).toBe(
    "No bottleneck. a, b and c are paused.",
  );
});
