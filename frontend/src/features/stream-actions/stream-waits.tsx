import type { Blocker, Stream, StreamWait } from "@/api/types";
import { formatAgo, formatTime } from "@/lib/format";
import { ProblemAlert } from "@/ui/problem-alert";

function blockerInWords({ pid, user, application_name, state, since }: Blocker) {
  if (pid === 0) return "a prepared transaction (see pg_prepared_xacts there)";
  const who = [application_name, user].filter(Boolean).join(" of ");
  const begun = since && `its transaction began ${formatAgo(since)}`;
  const more = [who, state, begun].filter(Boolean).join(", ");
  return `server process ${pid}${more && ` (${more})`}`;
}

function Wait({ stream, wait }: { stream: Stream; wait: StreamWait }) {
  const several = stream.destinations.length > 1 && wait.destination_id !== null;
  const pids = wait.blockers.map(({ pid }) => pid).filter((pid) => pid !== 0);
  return (
    <ProblemAlert
      tone="warning"
      problem={{
        title: `Waits for other sessions at the ${wait.side} ${wait.database}`,
        message: `It waits for ${wait.blockers.map(blockerInWords).join(" and ")}.`,
        cure: "It continues as soon as they commit or roll back. Stopping the stream does not wait for them.",
        sql: pids.length ? pids.map((pid) => `SELECT pg_terminate_backend(${pid});`).join("\n") : null,
        facts: [
          `since ${formatTime(wait.since)}`,
          several ? `destination ${wait.destination_id}` : "",
          wait.statement,
        ].filter(Boolean),
      }}
    />
  );
}

/** Behind whom a stream waits at a server while it starts, or is deleted. */
export function StreamWaits({ stream }: { stream: Stream }) {
  return stream.waits.map((wait) => (
    <Wait key={`${wait.side} ${wait.database} ${wait.since} ${wait.statement}`} stream={stream} wait={wait} />
  ));
}
