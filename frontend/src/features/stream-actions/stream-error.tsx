import type { Stream } from "@/api/types";
import { formatTime } from "@/lib/format";
import { EngineErrorAlert } from "@/ui/engine-error-alert";

const classes: Record<string, string> = {
  transient: "the engine tries again by itself",
  permanent: "does not go away by itself",
  operator_action: "needs an operator",
  corruption: "data may be damaged",
};

/** Why the stream does not run, and what to do. */
export function StreamErrorPanel({ stream }: { stream: Stream }) {
  const { error } = stream;
  if (!error) return null;
  const facts = [
    error.class && (classes[error.class] ?? error.class),
    error.table && `table ${error.table}`,
    error.sqlstate && `SQLSTATE ${error.sqlstate}`,
    error.lsn && error.lsn !== "0/0" && `LSN ${error.lsn}`,
    error.xid ? `transaction ${error.xid}` : null,
    error.at && `at ${formatTime(error.at)}`,
    stream.retry_at && `next try ${formatTime(stream.retry_at)}`,
  ].filter((fact): fact is string => Boolean(fact));
  return <EngineErrorAlert error={error} facts={facts} />;
}
