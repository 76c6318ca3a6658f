import { screen, within } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import { component, components, destination, propagated, sample, stream } from "@/test/data";
import { expectNoAxeViolations, renderUi } from "@/test/render";
import { ComponentStrip } from "./component-strip";
import { ComponentTable } from "./component-table";
import { arrange, outputPlugin, sumRate } from "./components";

const NO_TIME = {
  busy: 0,
  idle: 0,
  flow_control: 0,
  network: 0,
  execute: 0,
  commit: 0,
  dependency: 0,
  commit_order: 0,
  lock: 0,
  disk: 0,
};
const AT = "2026-11-21T00:00:05Z";

describe("arrange", () => {
  it("finds each component and sorts the appliers", () => {
    const strip = arrange(components);
    expect(strip.capture?.id).toBe("capture");
    expect(strip.reader?.id).toBe("warehouse:reader");
    expect(strip.coordinator?.id).toBe("warehouse:coordinator");
    expect(strip.appliers.map(({ server }) => server)).toEqual([1, 2]);
  });
});

describe("sumRate", () => {
  it("is a lower bound while a rate is unknown", () => {
    const known = component("a", { lcrs_per_second: 5 });
    expect(sumRate([known, component("b")], "lcrs_per_second")).toEqual({ value: 5, atLeast: true });
    expect(sumRate([known, known], "lcrs_per_second")).toEqual({ value: 10, atLeast: false });
    expect(sumRate([], "lcrs_per_second")).toEqual({ value: null, atLeast: false });
  });
});

describe("ComponentStrip", () => {
  it("shows the first sample's rates as unknown, not as zero", async () => {
    renderUi(<ComponentStrip sample={sample(AT)} stream={stream()} />);
    expect(titles("Components")).toEqual(["Capture", "Queue"]);
    expect(titles("Components of warehouse")).toEqual(["Apply reader", "Coordinator", "Appliers"]);
    const capture = screen.getByRole("listitem", { name: "Capture" });
    expect(capture).toHaveTextContent("Capturing changes");
    expect(capture).toHaveTextContent("LCRs–");
    expect(capture).not.toHaveTextContent("0 LCR/s");
    expect(within(capture).getByRole("img", { name: "Capture, time: time not known yet" })).toBeVisible();
    await expectNoAxeViolations();
  });

  it("shows rates with units, the queue's depth and where the time went", () => {
    const time = {
      busy: 25,
      idle: 75,
      flow_control: 0,
      network: 0,
      execute: 0,
      commit: 0,
      dependency: 0,
      commit_order: 0,
      lock: 0,
      disk: 0,
    };
    const known = components.map((part) => ({ ...part, lcrs_per_second: 1500, time_percent: time }));
    renderUi(<ComponentStrip sample={sample(AT, { components: known })} stream={stream()} />);
    const reader = screen.getByRole("listitem", { name: "Apply reader" });
    expect(reader.textContent?.replace(/[\u00a0\u202f]/g, " ")).toContain("1.5 k LCR/s");
    const bar = within(reader).getByRole("img").getAttribute("aria-label");
    expect(bar?.replaceAll("\u00a0", " ")).toBe("Apply reader, time: Busy 25 %, Idle 75 %");
    expect(screen.getByRole("meter", { name: "Queue depth" })).toHaveAttribute("aria-valuenow", "0");
    expect(screen.getByRole("listitem", { name: "Appliers" }).textContent).toContain("3\u202fk");
  });
});

describe("a lock of somebody else", () => {
  it("is told where the analysis has seen the appliers wait for it", () => {
    const time = { busy: 0, idle: 0, flow_control: 0, network: 0, execute: 100, commit: 0, disk: 0 };
    const none = { dependency: 0, commit_order: 0, lock: 0 };
    const parts = components.map((part) =>
      part.sub_component === "APPLY SERVER"
        ? { ...part, state: "EXECUTE TRANSACTION", time_percent: { ...time, ...none } }
        : part,
    );
    const mark = { bottleneck: true, heldBackBy: null, locked: 0.9, opened: false, onOpen: () => {} };
    const marksOf = () => (title: string) => (title === "Appliers" ? mark : null);
    renderUi(
      <ComponentStrip sample={sample(AT, { components: parts })} stream={stream()} marksOf={marksOf} />,
    );
    const appliers = screen.getByRole("listitem", { name: "Appliers" });
    expect(within(appliers).getAllByText(/Waits for a lock/)[0]).toBeVisible();
    expect(appliers).not.toHaveTextContent("Execute transaction");
    const bar = within(appliers).getAllByRole("img", { name: /time/ })[0]?.getAttribute("aria-label");
    expect(bar?.replaceAll("\u00a0", " ")).toMatch(/Execute 10 %, Lock 90 %/);
  });
});

describe("large transactions", () => {
  const captureText = (gauges: Record<string, number>) => {
    const parts = components.map((part) => (part.id === "capture" ? { ...part, gauges } : part));
    renderUi(<ComponentStrip sample={sample(AT, { components: parts })} stream={stream()} />);
    return screen.getByRole("listitem", { name: "Capture" }).textContent;
  };

  it("says that the source sends them while they run", () => {
    expect(captureText({ streaming: 1 })).toContain("Large transactions: while they run");
  });

  it("says that they come after their commit", () => {
    expect(captureText({ streaming: 0 })).toContain("Large transactions: after their commit");
  });

  it("says nothing before it is known", () => {
    expect(captureText({})).not.toContain("Large transactions");
  });
});

describe("spill", () => {
  const spilled = (values: Partial<(typeof components)[number]>) =>
    components.map((part) => (part.id === "warehouse:reader" ? { ...part, ...values } : part));
  const readerText = () =>
    screen.getByRole("listitem", { name: "Apply reader" }).textContent?.replace(/[\u00a0\u202f]/g, " ");

  it("shows count, rate, bytes and age of what is on disk", () => {
    const parts = spilled({
      counters: { lcrs: 90_000, spilled_lcrs: 20_000 },
      counter_rates: { spilled_lcrs: 2500 },
      gauges: { spill_transactions: 1, spill_bytes: 3 * 2 ** 20, spill_age_us: 12_000_000 },
    });
    renderUi(<ComponentStrip sample={sample(AT, { components: parts })} stream={stream()} />);
    expect(readerText()).toContain("20 k LCR");
    expect(readerText()).toContain("2.5 k LCR/s");
    expect(readerText()).toContain("3 MiB");
    expect(readerText()).toContain("12 s");
  });

  it("leaves rate, bytes and age out while nothing is on disk", () => {
    const parts = spilled({
      counters: { lcrs: 90_000, spilled_lcrs: 0 },
      counter_rates: { spilled_lcrs: 0 },
      gauges: { spill_bytes: 0, spill_age_us: 0 },
    });
    renderUi(<ComponentStrip sample={sample(AT, { components: parts })} stream={stream()} />);
    expect(readerText()).toContain("Spilled");
    expect(readerText()).not.toContain("Spill ");
  });
});

describe("outputPlugin", () => {
  it("is known from the first change on, by whether changes come in batches", () => {
    expect(outputPlugin(component("capture", { counters: { lcrs: 0, batches: 0 } }))).toBeNull();
    expect(outputPlugin(component("capture", { counters: { lcrs: 9, batches: 0 } }))).toBe("pgoutput");
    expect(outputPlugin(component("capture", { counters: { lcrs: 9, batches: 2 } }))).toBe("thalweg_output");
  });
});

const titles = (list: string) =>
  within(screen.getByRole("list", { name: list }))
    .getAllByRole("listitem")
    .map((card) => card.getAttribute("aria-label"));

describe("ComponentStrip over two engines", () => {
  it("shows with the destination what sends to it and receives there", async () => {
    const two = stream({
      mode: "propagation",
      destinations: [destination({ engine: { id: "engine02", name: "engine-2", state: "ONLINE" } })],
    });
    renderUi(<ComponentStrip sample={sample(AT, { components: propagated })} stream={two} />);
    expect(titles("Components")).toEqual(["Capture", "Queue"]);
    expect(titles("Components of warehouse")).toEqual([
      "Sender",
      "Receiver",
      "Apply queue",
      "Apply reader",
      "Coordinator",
      "Appliers",
    ]);
    expect(screen.getByRole("listitem", { name: "Sender" })).toHaveTextContent("Sending LCRs");
    await expectNoAxeViolations();
  });
});

describe("ComponentStrip of a stream that mines", () => {
  it("shows what is staged and held, and no output plugin", () => {
    const parts = [
      component("shipment", {
        type: "CAPTURE",
        sub_component: "WAL SHIPMENT",
        state: "PAUSED FOR STAGING SPACE",
        counters: { received_bytes: 1024 ** 3, archived_bytes: 16 * 1024 ** 2 },
        gauges: {
          archive_wait_us: 90e6,
          staged_bytes: 1024 ** 3,
          staging_limit_bytes: 10 * 1024 ** 3,
          unsynced_bytes: 0,
        },
      }),
      component("builder", {
        type: "CAPTURE",
        sub_component: "LOGMINER BUILDER",
        gauges: {
          held_bytes: 1024 ** 2,
          kept_bytes: 512 * 1024 ** 2,
          memory_limit_bytes: 256 * 1024 ** 2,
          open_transactions: 1,
        },
      }),
      ...components.map((part) => (part.type === "CAPTURE" ? { ...part, counters: { lcrs: 9 } } : part)),
    ];
    renderUi(
      <ComponentStrip sample={sample(AT, { components: parts })} stream={stream({ capture_kind: "wal" })} />,
    );
    const capture = screen.getByRole("listitem", { name: "Capture" });
    expect(capture).toHaveTextContent("Capturing changes");
    expect(capture).toHaveTextContent("Paused for staging space");
    expect(capture).toHaveTextContent(/Staged: 1\S* GiB of 10\S* GiB/);
    expect(capture).toHaveTextContent(/Kept for searches: 512\S* MiB/);
    expect(capture).toHaveTextContent(/From the archive: 16\S* MiB/);
    expect(capture).toHaveTextContent("Archive lags: 1 min 30 s");
    expect(capture).toHaveTextContent(/Held: 1\S* MiB of 256\S* MiB/);
    expect(capture).not.toHaveTextContent("pgoutput");
  });
});

describe("ComponentStrip of several destinations", () => {
  const spill = component("reports:backlog", {
    type: "QUEUE",
    sub_component: "QUEUE SPILL",
    destination_id: "reports",
  });
  const ofReports = components
    .slice(2)
    .map((part) => ({ ...part, id: part.id.replace("warehouse", "reports"), destination_id: "reports" }));
  const both = stream({
    mode: "fan-out",
    destinations: [
      destination(),
      destination({ id: "reports", database: { id: "d2", name: "reports", address: "h/reports" } }),
    ],
  });

  it("shows capture and queue once, then each destination", async () => {
    renderUi(
      <ComponentStrip
        sample={sample(AT, { components: [...components, spill, ...ofReports] })}
        stream={both}
        destinationHead={({ database }) => <p>head of {database.name}</p>}
      />,
    );
    expect(titles("Components")).toEqual(["Capture", "Queue"]);
    expect(titles("Components of warehouse")).toEqual(["Apply reader", "Coordinator", "Appliers"]);
    expect(titles("Components of reports")).toEqual(["Apply reader", "Coordinator", "Appliers"]);
    const reports = screen.getByRole("region", { name: "Destination reports" });
    expect(within(reports).getByText("head of reports")).toBeVisible();
    await expectNoAxeViolations();
  });
});

describe("a capture that a full backlog holds up", () => {
  const show = (state: "FULL" | "ON DISK") => {
    const backlog = { state, bytes: 9, lcrs: 1, frames: 1, age_seconds: 60, limit_bytes: 9 };
    const paused = components.map((part) =>
      part.type === "CAPTURE" ? { ...part, state: "PAUSED FOR FLOW CONTROL" } : part,
    );
    renderUi(
      <ComponentStrip
        sample={sample(AT, { components: paused })}
        stream={stream({ destinations: [destination({ backlog })] })}
      />,
    );
    return screen.getByRole("listitem", { name: "Capture" });
  };

  it("says for which destination it waits", () => {
    expect(show("FULL")).toHaveTextContent("Waits for room at warehouse");
  });

  it("is paused for flow control where none is full", () => {
    expect(show("ON DISK")).toHaveTextContent("Paused for flow control");
  });
});

describe("a queue in flow control", () => {
  const show = (queueState: string, backlogState: "FULL" | "ON DISK") => {
    const backlog = { state: backlogState, bytes: 9, lcrs: 1, frames: 1, age_seconds: 60, limit_bytes: 9 };
    const parts = components.map((part) => (part.type === "QUEUE" ? { ...part, state: queueState } : part));
    renderUi(
      <ComponentStrip
        sample={sample(AT, { components: parts })}
        stream={stream({ destinations: [destination({ backlog })] })}
      />,
    );
    return screen.getByRole("listitem", { name: "Queue" });
  };

  it.each(["TOO MANY UNBROWSED MESSAGES", "INSUFFICIENT MEMORY"])("says of %s what to do next", (cause) => {
    const queue = show(`IN FLOW CONTROL: ${cause}`, "ON DISK");
    expect(queue).toHaveTextContent("The queue is full");
    expect(queue).toHaveTextContent("Nothing is lost");
    expect(queue).toHaveTextContent("the advisor names the cause and its cure");
  });

  it("waits for the backlog that is full", () => {
    const queue = show("IN FLOW CONTROL: TOO MANY UNBROWSED MESSAGES", "FULL");
    expect(queue).toHaveTextContent("The backlog of warehouse is full");
    expect(queue).not.toHaveTextContent("advisor");
  });

  it("is silent where LCRs enter and leave freely", () => {
    expect(show("NORMAL", "ON DISK")).not.toHaveTextContent("Nothing is lost");
  });
});

describe("ComponentTable", () => {
  it("has a row for every component", async () => {
    renderUi(<ComponentTable sample={sample(AT)} />);
    expect(screen.getAllByRole("row")).toHaveLength(components.length + 1);
    expect(screen.getByRole("cell", { name: "Applier 1" })).toBeVisible();
    await expectNoAxeViolations();
  });

  it("says how often an applier gave way to others, and what it waited for", () => {
    const waiting = component("server-3", {
      sub_component: "APPLY SERVER",
      server: 3,
      counters: { lcrs: 10, deadlocks: 7 },
      time_percent: { ...NO_TIME, dependency: 60, commit_order: 40 },
    });
    renderUi(<ComponentTable sample={sample(AT, { components: [waiting] })} />);
    const cells = screen
      .getAllByRole("cell")
      .map((cell) => cell.textContent?.replace(/[\u00a0\u202f]/g, " "));
    expect(cells).toContain("7");
    expect(screen.getByRole("img", { name: /Dependency 60.*Commit order 40/ })).toBeVisible();
  });
});
