// Console, control plane and engines are built together: where their versions differ, one of them was left behind.
import type { Engine } from "@/api/types";

export interface VersionedPart {
  name: string;
  version: string;
}

export interface VersionMismatch {
  /** Every part with its version, so that the one left behind shows. */
  parts: VersionedPart[];
  cures: string[];
}

type EngineVersion = Pick<Engine, "name" | "version" | "state">;

/** Null while all known versions are the same. What an engine that does not answer runs now is not known. */
export function versionMismatch(
  consoleVersion: string,
  controlPlane: string | undefined,
  engines: readonly EngineVersion[],
): VersionMismatch | null {
  if (controlPlane === undefined) return null;
  const running = engines.flatMap(({ name, version, state }) =>
    version !== null && state !== "UNREACHABLE" ? [{ name: `Engine ${name}`, version }] : [],
  );
  const stale = running.filter(({ version }) => version !== controlPlane);
  const cures = [
    consoleVersion !== controlPlane &&
      "Reload this page. If the console's version stays, run make up on the control plane's host.",
    stale.length > 0 &&
      `Run make up on the host of ${stale.map(({ name }) => name.replace("Engine", "engine")).join(", ")}, or restart it with this version's program.`,
  ].filter((cure): cure is string => cure !== false);
  if (cures.length === 0) return null;
  return {
    parts: [
      { name: "Console", version: consoleVersion },
      { name: "Control plane", version: controlPlane },
      ...running,
    ],
    cures,
  };
}
