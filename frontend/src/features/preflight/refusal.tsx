import { Stack } from "@mantine/core";
import { problemInWords } from "@/api/problem-in-words";
import { ProblemAlert } from "@/ui/problem-alert";
import { CheckList, type Consents } from "./check-list";
import { refusedChecks } from "./checks";

interface RefusalProps {
  error: unknown;
  databases: Record<string, string>;
  consents: Consents;
}

/** Why a request is refused: the checks in its way, with those that may be accepted; else the problem itself. */
export function Refusal({ error, databases, consents }: RefusalProps) {
  const checks = refusedChecks(error);
  const problem = problemInWords(error);
  if (checks.length === 0) return <ProblemAlert problem={problem} />;
  const failed = checks.some(({ status }) => status === "failed");
  return (
    <Stack gap="sm">
      <ProblemAlert
        tone={failed ? "bad" : "warning"}
        problem={{
          title: problem.title,
          message: failed
            ? "Fix what the failed checks name, accept those that need your consent, and try again."
            : "Accept the checks that need your consent, then try again.",
        }}
      />
      <CheckList checks={checks} databases={databases} consents={consents} />
    </Stack>
  );
}
