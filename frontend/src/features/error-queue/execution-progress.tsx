import { Progress, Stack, Text } from "@mantine/core";
import type { ErrorExecution } from "@/api/types";
import { counted, formatCount, formatTime } from "@/lib/format";
import { ProblemAlert } from "@/ui/problem-alert";

/** How far the execution is that somebody has asked for, or why it stopped. */
export function ExecutionProgress({ execution }: { execution: ErrorExecution | null }) {
  if (!execution) return null;
  if (execution.state === "DONE") return <LeftOut execution={execution} />;
  const failed = execution.failed_again ? `; ${formatCount(execution.failed_again)} failed again` : "";
  const share = `${formatCount(execution.executed)} of ${counted(execution.total, "transaction")}`;
  if (execution.state === "FAILED") {
    return (
      <ProblemAlert
        tone="warning"
        problem={{
          title: execution.error_id === null ? `Executed: ${share}${failed}` : stoppedInWords(execution),
          message: execution.message,
          parts: execution.failures.map(({ error_id, message, code, sqlstate }) => ({
            pointer: `Transaction ${error_id} of the queue`,
            message: message ?? [code, sqlstate].filter(Boolean).join(" · "),
          })),
          facts: [formatTime(execution.finished_at)],
        }}
      />
    );
  }
  return (
    <Stack gap={4} px={14} role="status">
      <Text size="sm">
        Executing{execution.role && ` as ${execution.role}`}: {share} done{failed}.
      </Text>
      <Progress
        value={(100 * execution.executed) / Math.max(1, execution.total)}
        aria-label="Executed transactions"
      />
    </Stack>
  );
}

/** The transaction that was asked for comes first; what is left waited behind it. */
function stoppedInWords({ error_id, executed, total, failed_again }: ErrorExecution): string {
  if (executed === 0) return `The execution stopped after 0 of ${counted(total, "transaction")}`;
  const beside = executed > 1 ? `, with ${formatCount(executed - 1)} behind it` : "";
  return `Transaction ${error_id} of the queue was executed${beside}; ${formatCount(failed_again || 1)} behind it failed`;
}

/** That it has ended is seen in the queue; that it has applied nothing of a transaction is not. */
function LeftOut({ execution }: { execution: ErrorExecution }) {
  if (execution.left_out === 0) return null;
  const more = execution.left_out - execution.left_out_ids.length;
  const which = `${execution.left_out_ids.join(", ")}${more > 0 ? ` and ${formatCount(more)} more` : ""}`;
  return (
    <Text size="sm" px={14} role="status">
      {execution.left_out === 1 ? "Transaction" : "Transactions"} {which} left the queue at{" "}
      {formatTime(execution.finished_at)} without anything being applied: all changes were left out.
    </Text>
  );
}
