import { Center } from "@mantine/core";
import type { ErrorComponentProps } from "@tanstack/react-router";
import { problemInWords } from "@/api/problem-in-words";
import { ProblemAlert } from "@/ui/problem-alert";

/** Shown in place of a page that failed to render. */
export function PageError({ error, reset }: ErrorComponentProps) {
  return (
    <Center component="main" p="xl">
      <ProblemAlert problem={problemInWords(error)} onRetry={reset} />
    </Center>
  );
}
