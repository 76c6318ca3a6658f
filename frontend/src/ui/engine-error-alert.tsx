import type { ReactNode } from "react";
import { ProblemAlert } from "./problem-alert";

interface ReportedError {
  code: string;
  class: string;
  title: string;
  message: string;
  /** A fuller message, for operators; shown in place of `message`. */
  detail: string | null;
  cure: string | null;
}

interface EngineErrorAlertProps {
  error: ReportedError;
  facts?: string[];
  actions?: ReactNode;
}

/** An error that an engine reports: a warning while the engine tries again by itself. */
export function EngineErrorAlert({ error, facts, actions }: EngineErrorAlertProps) {
  const { title, message, detail, cure, code } = error;
  return (
    <ProblemAlert
      tone={error.class === "transient" ? "warning" : "bad"}
      problem={{ title, message: detail ?? message, cure, code, facts }}
      actions={actions}
    />
  );
}
