import type { EngineErrorCode } from "./engine-errors.generated";

/** Whether it is that error of an engine; the compiler refuses a code that no engine has. */
export function isEngineError(error: { code: string } | null | undefined, code: EngineErrorCode): boolean {
  return error?.code === code;
}
