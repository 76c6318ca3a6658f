import { expect, type Locator, type Page } from "@playwright/test";
import { Shell } from "./shell.ts";

const PREFIXES: Record<string, number> = { "": 1, k: 1e3, M: 1e6, G: 1e9 };

/** The first rate in a text, in things a second: "1.25 k LCR/s" is 1250. Null while it is not known. */
export function rateIn(text: string, unit: "LCR" | "txn"): number | null {
  const found = new RegExp(`(< )?([\\d.]+)\\s*([kMG]?)\\s*${unit}/s`, "u").exec(text);
  return found ? Number(found[2]) * (PREFIXES[found[3] ?? ""] ?? Number.NaN) : null;
}

type Component = "Capture" | "Queue" | "Apply reader" | "Coordinator" | "Appliers";

export class StreamScreen {
  readonly page: Page;
  readonly shell: Shell;
  readonly strip: Locator;
  readonly copy: Locator;

  constructor(page: Page) {
    this.page = page;
    this.shell = new Shell(page);
    this.strip = page.getByRole("region", { name: "Path", exact: true });
    this.copy = page.getByRole("region", { name: /^(Initial copy|Copied tables)$/ });
  }

  async open(stream: string): Promise<void> {
    await this.page.goto("/");
    await this.page.getByRole("link", { name: stream, exact: true }).click();
    await expect(this.shell.heading(stream)).toBeVisible();
  }

  /** The id is part of the address. */
  get id(): string {
    return new URL(this.page.url()).pathname.split("/").at(-1) ?? "";
  }

  /** The title with its badges: health and phase. */
  header(stream: string): Locator {
    return this.shell.heading(stream).locator("xpath=..");
  }

  async expectPhase(stream: string, phase: string | RegExp): Promise<void> {
    await expect(this.header(stream)).toContainText(phase);
  }

  /** Health says so from the request on; the phase once the queue is drained. */
  async expectStopped(stream: string): Promise<void> {
    await this.expectPhase(stream, "Stopped");
    await expect(this.header(stream)).not.toContainText(/Replicating|Draining/);
  }

  async tab(name: RegExp): Promise<void> {
    await this.page.getByRole("tab", { name }).click();
  }

  component(name: Component): Locator {
    return this.strip.getByRole("listitem", { name, exact: true });
  }

  /** One destination, with its components. */
  destination(database: string): Locator {
    return this.page.getByRole("region", { name: `Destination ${database}`, exact: true });
  }

  /** LCR/s of a component as its card shows it. */
  async lcrRate(name: Component): Promise<number | null> {
    return rateIn(await this.component(name).innerText(), "LCR");
  }

  get appliers(): Locator {
    return this.page.getByRole("region", { name: "Each applier" }).getByRole("img");
  }

  action(name: "Start" | "Stop" | "Delete"): Locator {
    return this.page.getByRole("button", { name, exact: true });
  }

  /** In the dialogue that says what follows. */
  confirm(name: "Stop" | "Pause" | "Execute"): Locator {
    return this.page.getByRole("dialog").getByRole("button", { name, exact: true });
  }
}
