import { Center } from "@mantine/core";
import type { ErrorComponentProps } from "@tanstack/react-router";
import { problemInWords } from "@/api/problem-in-words";
import { ProblemAlert } from "@/ui/problem-alert";

/** What a page shows when drawing it failed. */
export function PageError({ error, reset }: ErrorComponentProps) {
  return (
    <Center component="main" p="xl">
      <ProblemAlert problem={problemInWords(error)} onRetry={reset} />
    </Center>
  );
}
