import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { curl } from "./curl";

/** The arguments that a shell would hand to curl. */
function shellArguments(command: string, token: object = { THALWEG_TOKEN: "secret" }): string[] {
  const script = `curl() { for word in "$@"; do printf '%s\\0' "$word"; done; }\n${command}`;
  const env = { ...process.env, ...token };
  return execFileSync("bash", ["-c", script], { env }).toString().split("\0").slice(0, -1);
}

describe("curl", () => {
  it("survives the shell with quotes and newlines in the body", () => {
    const body = {
      name: 'it\'s "quoted" $HOME `id`',
      rules: { include: [{ schema: "public", table: "*" }] },
    };
    const call = { method: "POST", path: "/api/v1/streams", body } as const;
    const words = shellArguments(curl(call, "http://localhost:8642"));
    expect(words.slice(0, 4)).toEqual(["-X", "POST", "http://localhost:8642/api/v1/streams", "-H"]);
    expect(words).toContain("Authorization: Bearer secret");
    expect(JSON.parse(words.at(-1) ?? "")).toEqual(body);
  });

  it("finds the token in the file that cli.env names", () => {
    const folder = mkdtempSync(join(tmpdir(), "the token "));
    const file = join(folder, "api-token");
    writeFileSync(file, "from a file\n");
    const call = { method: "GET", path: "/api/v1/overview" } as const;
    const words = shellArguments(curl(call, "http://h"), { THALWEG_TOKEN_FILE: file });
    rmSync(folder, { recursive: true });
    expect(words).toContain("Authorization: Bearer from a file");
  });

  it("carries headers and needs no body", () => {
    const call = { method: "PATCH", path: "/x", headers: { "If-Match": '"7"' } } as const;
    const words = shellArguments(curl(call, "http://h"));
    expect(words).toContain('If-Match: "7"');
    expect(words).not.toContain("-d");
  });
});
