import { List, Text } from "@mantine/core";
import type { Check } from "@/api/types";

interface AcceptedChecksProps {
  /** All checks that the user has seen, the latest last. */
  checks: readonly Check[];
  accepted: readonly string[];
}

/** The checks whose consents are given, each once. */
export function acceptedChecks({ checks, accepted }: AcceptedChecksProps): Check[] {
  const given = checks.filter(({ consent }) => consent && accepted.includes(consent));
  return [...new Map(given.map((check) => [check.consent, check])).values()];
}

/** The accepted checks with their items; the consents go with the request. Renders nothing if none is accepted. */
export function AcceptedChecks(props: AcceptedChecksProps) {
  const given = acceptedChecks(props);
  if (given.length === 0) return null;
  return (
    <List size="sm" aria-label="Accepted" spacing={2} listStyleType="disc" pl="xs">
      {given.map(({ consent, title, items }) => (
        <List.Item key={consent}>
          {title}
          {items.length > 0 && (
            <Text size="xs" c="dimmed">
              {items.join(", ")}
            </Text>
          )}
        </List.Item>
      ))}
    </List>
  );
}
