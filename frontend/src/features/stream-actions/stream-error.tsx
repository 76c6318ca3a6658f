import type { Stream } from "@/api/types";
import { formatTime } from "@/lib/format";
import { EngineErrorAlert } from "@/ui/engine-error-alert";

const classes: Record<string, string> = {
  transient: "the engine tries again by itself",
  permanent: "does not go away by itself",
  operator_action: "needs an operator",
  corruption: "data may be damaged",
};

/** Why the stream does not run, and what to do. What an engine last said may be over once it does not answer. */
export function StreamErrorPanel({ stream }: { stream: Stream }) {
  const { error } = stream;
  if (!error) return null;
  const heard = stream.status !== "UNKNOWN";
  const facts = [
    heard
      ? error.class && (classes[error.class] ?? error.class)
      : "last reported; the engine is not heard of now",
    error.table && `table ${error.table}`,
    error.sqlstate && `SQLSTATE ${error.sqlstate}`,
    error.lsn && error.lsn !== "0/0" && `LSN ${error.lsn}`,
    error.xid ? `transaction ${error.xid}` : null,
    error.at && `at ${formatTime(error.at)}`,
    stream.retry_at && `next try ${formatTime(stream.retry_at)}`,
  ].filter((fact): fact is string => Boolean(fact));
  return <EngineErrorAlert error={error} facts={facts} />;
}
