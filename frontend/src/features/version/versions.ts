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

/** Null while all known versions are the same. The present version of an engine that does not answer is not known. */
export function versionMismatch(
  consoleVersion: string,
  controlPlane: string | undefined,
  engines: readonly EngineVersion[],
): VersionMismatch | null {
  if (controlPlane === undefined) return null;
  const running = engines.flatMap(({ name, version, state }) =>
    version !== null && state !== "UNREACHABLE" ? [{ engine: name, version }] : [],
  );
  const older = running.filter(({ version }) => isNewer(controlPlane, version));
  const behind = [consoleVersion, ...running.map(({ version }) => version)].some((version) =>
    isNewer(version, controlPlane),
  );
  const cures = [
    isNewer(controlPlane, consoleVersion) && "Reload this page to get the new console.",
    behind && "Upgrade the control plane: run make up on its host.",
    older.length > 0 &&
      `Upgrade ${older.map(({ engine }) => `engine ${engine}`).join(", ")}: run make up on the control plane's host, or install the new program on the engine's own host and restart it.`,
  ].filter((cure): cure is string => cure !== false);
  if (cures.length === 0) return null;
  return {
    parts: [
      { name: "Console", version: consoleVersion },
      { name: "Control plane", version: controlPlane },
      ...running.map(({ engine, version }) => ({ name: `Engine ${engine}`, version })),
    ],
    cures,
  };
}

const isNewer = (version: string, than: string) => version.localeCompare(than, "en", { numeric: true }) > 0;
