// The databases themselves, past Thalweg: psql and pgbench on the stack's real clusters.
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Cluster, stack } from "./stack.ts";

const run = promisify(execFile);
const OUTPUT_BYTES_MAX = 256 * 1024 * 1024;

interface Login {
  user: string;
  password: string;
}

function connection(cluster: Cluster, login: Login) {
  return {
    options: [`--host=${cluster.host}`, `--port=${cluster.port}`, `--username=${login.user}`],
    env: { ...process.env, PGPASSWORD: login.password, PGAPPNAME: "thalweg e2e" },
  };
}

/** Runs SQL as the cluster's superuser, all in one transaction; answers its rows unaligned. */
export async function sql(
  cluster: Cluster,
  database: string,
  text: string,
  login: Login = { user: "postgres", password: cluster.superuser },
): Promise<string> {
  const { options, env } = connection(cluster, login);
  const { stdout } = await run(
    join(stack.postgresBinaries, "psql"),
    [
      ...options,
      "--no-psqlrc",
      "--quiet",
      "--tuples-only",
      "--no-align",
      "--set=ON_ERROR_STOP=1",
      `--dbname=${database}`,
      "--command",
      text,
    ],
    { env, maxBuffer: OUTPUT_BYTES_MAX },
  );
  return stdout.trim();
}

export interface LoadShape {
  /** pgbench's option that says what a transaction is. */
  script: `--file=${string}` | `--builtin=${string}`;
  /** Transactions a second. */
  rate: number;
  /** It ends by itself after so long. */
  seconds: number;
}

/** A pgbench run that writes to a database as its application. */
export class Load {
  private readonly process: ChildProcess;
  private readonly ended: Promise<void>;
  private output = "";

  constructor(cluster: Cluster, database: string, { script, rate, seconds }: LoadShape) {
    const { options, env } = connection(cluster, stack.application);
    const load = [script, `--rate=${rate}`, `--time=${seconds}`, "--client=2", "--max-tries=10"];
    this.process = spawn(
      join(stack.postgresBinaries, "pgbench"),
      [...options, "--no-vacuum", ...load, database],
      {
        env,
        stdio: ["ignore", "pipe", "pipe"],
      },
    );
    this.process.stdout?.on("data", (data) => {
      this.output += data;
    });
    this.process.stderr?.on("data", (data) => {
      this.output += data;
    });
    this.ended = new Promise((resolve) => this.process.once("close", () => resolve()));
  }

  /** Ends the load now; throws when it had failed by itself. */
  async stop(): Promise<void> {
    const failed = this.process.exitCode !== null && this.process.exitCode !== 0;
    if (this.process.exitCode === null) this.process.kill("SIGINT");
    await this.ended;
    if (failed) throw new Error(`pgbench ended with status ${this.process.exitCode}:\n${this.output}`);
  }
}
