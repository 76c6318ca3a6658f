import { Alert, Button, Group, List, Stack, Text } from "@mantine/core";
import { IconAlertTriangle, IconCircleX, IconRefresh } from "@tabler/icons-react";
import type { ReactNode } from "react";
import { capitalised } from "@/lib/sentences";
import { CopyBlock } from "./copy-block";

/** The part of a problem that a person needs. The API's problem details fit it, an engine's error does too. */
export interface ProblemInWords {
  title: string;
  message?: string | null;
  cure?: string | null;
  sql?: string | null;
  parts?: { pointer?: string; message: string; cure?: string | null; sql?: string | null }[];
  code?: string | null;
  facts?: string[];
}

interface ProblemAlertProps {
  problem: ProblemInWords;
  tone?: "bad" | "warning";
  onRetry?: () => void;
  actions?: ReactNode;
}

/** A code begins the line as it is. */
function factsInWords({ code, facts = [] }: ProblemInWords): string {
  return code ? [code, ...facts].join(" · ") : capitalised(facts.join(" · "));
}

/** Says what happened, why, and what to do about it. */
export function ProblemAlert({ problem, tone = "bad", onRetry, actions }: ProblemAlertProps) {
  const Icon = tone === "bad" ? IconCircleX : IconAlertTriangle;
  return (
    <Alert
      role="alert"
      variant="default"
      p="sm"
      icon={<Icon size={18} color={`var(--tone-${tone})`} aria-hidden />}
      title={problem.title}
      styles={{
        root: { background: `var(--tone-${tone}-soft)`, borderColor: `var(--tone-${tone})` },
        // Names of tables and values of keys have no place to break a line at, and what sticks out is cut off.
        title: { color: `var(--tone-${tone})`, fontWeight: 600, overflowWrap: "anywhere" },
        message: { color: "var(--text-primary)", overflowWrap: "anywhere" },
      }}
    >
      <Stack gap={8}>
        {problem.message && problem.message !== problem.title && <Text size="sm">{problem.message}</Text>}
        {problem.parts && problem.parts.length > 0 && (
          <List size="sm" spacing={4}>
            {problem.parts.map((part) => (
              <List.Item key={`${part.pointer ?? ""} ${part.message}`}>
                {part.pointer && <Text component="code" size="xs" ff="monospace">{`${part.pointer}: `}</Text>}
                {part.message}
                {part.cure && ` ${part.cure}`}
                {part.sql && (
                  <CopyBlock text={part.sql} label="SQL" about={part.message} copyLabel="Copy SQL" />
                )}
              </List.Item>
            ))}
          </List>
        )}
        {problem.cure && (
          <Text size="sm">
            <strong>Cure: </strong>
            {problem.cure}
          </Text>
        )}
        {problem.sql && (
          <CopyBlock text={problem.sql} label="Cure as SQL" about={problem.title} copyLabel="Copy SQL" />
        )}
        {(problem.facts?.length || problem.code) && (
          <Text size="xs" style={{ color: "var(--text-primary)" }}>
            {factsInWords(problem)}
          </Text>
        )}
        {(onRetry || actions) && (
          <Group gap="xs">
            {onRetry && (
              <Button variant="default" leftSection={<IconRefresh size={14} aria-hidden />} onClick={onRetry}>
                Try again
              </Button>
            )}
            {actions}
          </Group>
        )}
      </Stack>
    </Alert>
  );
}
