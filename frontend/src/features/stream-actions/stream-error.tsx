import type { ReactNode } from "react";
import type { Stream, StreamError } from "@/api/types";
import { causesOf, haveOneCause } from "@/lib/causes";
import { formatTime } from "@/lib/format";
import { listed } from "@/lib/sentences";
import { EngineErrorAlert } from "@/ui/engine-error-alert";

const classes: Record<string, string> = {
  transient: "the engine tries again by itself",
  permanent: "does not go away by itself",
  operator_action: "needs an operator",
  corruption: "data may be damaged",
};

interface StreamErrorPanelProps {
  stream: Stream;
  /** Buttons that carry out the error's cure at the destinations that have it. */
  actions?: (error: StreamError, at: { id: string; name: string }[]) => ReactNode;
}

/** Why the stream does not run, and what to do. The last report of an engine that is silent may be out of date. */
export function StreamErrorPanel({ stream, actions }: StreamErrorPanelProps) {
  const { error } = stream;
  if (!error) return null;
  const heard = stream.status !== "UNKNOWN";
  const [cause] = causesOf(stream.destinations.filter((own) => haveOneCause(own.error, error)));
  const at = stream.destinations.length > 1 ? (cause?.at ?? []) : [];
  const facts = [
    heard
      ? error.class && (classes[error.class] ?? error.class)
      : "last reported; the engine does not answer now",
    at.length > 0 && `at ${listed(at.map(({ name }) => name))}`,
    error.table && `table ${error.table}`,
    error.sqlstate && `SQLSTATE ${error.sqlstate}`,
    error.lsn && error.lsn !== "0/0" && `LSN ${error.lsn}`,
    error.xid ? `transaction ${error.xid}` : null,
    error.at && `at ${formatTime(error.at)}`,
    stream.retry_at && `next try ${formatTime(stream.retry_at)}`,
  ].filter((fact): fact is string => Boolean(fact));
  const own = stream.destinations.map(({ id, database }) => ({ id, name: database.name }));
  const having = cause?.at ?? (own.length === 1 ? own : []);
  return <EngineErrorAlert error={error} facts={facts} actions={actions?.(error, having)} />;
}
