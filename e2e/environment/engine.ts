// A second engine beside the stack's: on ports of its own, with a state directory of its own, gone with the journey.
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type APIRequestContext, expect } from "@playwright/test";
import { stack } from "./stack.ts";

const headers = { Authorization: `Bearer ${stack.apiToken()}` };

/** Below those that the kernel gives to outgoing connections: nobody takes it until the engine listens. */
let nextPort = 19_000 + (process.pid % 500);

async function freePort(): Promise<number> {
  for (; nextPort < 20_000; nextPort += 1) {
    const server = createServer();
    const free = await new Promise<boolean>((resolve) => {
      server.once("error", () => resolve(false));
      server.listen(nextPort, "127.0.0.1", () => resolve(true));
    });
    if (!free) continue;
    await new Promise((resolve) => server.close(resolve));
    nextPort += 1;
    return nextPort - 1;
  }
  throw new Error("no port is free");
}

export class SecondEngine {
  private readonly process: ChildProcess;
  private readonly ended: Promise<void>;
  private readonly directory: string;
  private id: string | null = null;
  private output = "";

  private constructor(directory: string, listen: string[]) {
    this.directory = directory;
    const token = ["--token-file", join(directory, "token")];
    const state = ["--state-dir", join(directory, "state")];
    this.process = spawn(stack.engineBinary, [...listen, ...state, ...token], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.ended = new Promise((resolve) => this.process.once("close", () => resolve()));
    for (const pipe of [this.process.stdout, this.process.stderr])
      pipe?.on("data", (data) => {
        this.output = `${this.output}${data}`.slice(-10_000);
      });
  }

  /** Returns when it is enrolled, has its identity and says where it takes propagations. */
  static async start(request: APIRequestContext, name: string): Promise<SecondEngine> {
    const directory = await mkdtemp(join(tmpdir(), "thalweg-e2e-engine-"));
    const token = randomBytes(24).toString("hex");
    await writeFile(join(directory, "token"), token, { mode: 0o600 });
    const [control, propagation] = [await freePort(), await freePort()];
    const address = (port: number) => `127.0.0.1:${port}`;
    const engine = new SecondEngine(directory, [
      "--listen",
      address(control),
      "--propagation-listen",
      address(propagation),
    ]);
    try {
      await engine.enrol(request, name, `http://${address(control)}`, token);
    } catch (error) {
      await engine.stop(request);
      throw new Error(`the second engine did not enrol: ${error}\n${engine.output}`);
    }
    return engine;
  }

  private async enrol(request: APIRequestContext, name: string, url: string, control: string): Promise<void> {
    const made = await request.post("/api/v1/engines/enrolments", { headers, data: {} });
    const { token } = await made.json();
    await expect
      .poll(
        async () => {
          const data = { token, name, url, control_token: control };
          const answer = await request.post("/api/v1/engines/enrol", { data });
          if (answer.ok()) this.id = (await answer.json()).id;
          return answer.status();
        },
        { message: "the second engine enrols" },
      )
      .toBe(201);
    await expect
      .poll(
        async () => {
          const { identity, listen } = await (
            await request.get(`/api/v1/engines/${this.id}`, { headers })
          ).json();
          return identity !== null && listen !== null;
        },
        { message: "the second engine has its identity" },
      )
      .toBe(true);
  }

  /** Forgets it, and ends its process; its streams must be gone. */
  async stop(request: APIRequestContext): Promise<void> {
    try {
      if (this.id) {
        const forgotten = await request.delete(`/api/v1/engines/${this.id}`, { headers });
        expect(forgotten.status(), await forgotten.text()).toBe(204);
      }
    } finally {
      if (this.process.exitCode === null) this.process.kill("SIGTERM");
      await this.ended;
      await rm(this.directory, { recursive: true, force: true });
    }
  }
}
