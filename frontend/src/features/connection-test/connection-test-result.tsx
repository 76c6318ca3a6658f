import { Alert, Group, List, Stack, Text } from "@mantine/core";
import { IconCircleCheck } from "@tabler/icons-react";
import type { ConnectionTest } from "@/api/types";
import { asText, latencyMs } from "@/lib/format";
import { ProblemAlert } from "@/ui/problem-alert";
import { ToneIcon } from "@/ui/tone";

/** Result of a connection test: facts when it worked, the cure when it did not. */
export function ConnectionTestResult({ test }: { test: ConnectionTest }) {
  if (test.code !== null || !test.reachable) {
    return (
      <ProblemAlert
        problem={{
          title: "The connection test failed",
          message: test.message,
          cure: test.cure,
          sql: test.sql,
          code: test.code,
        }}
      />
    );
  }
  const { role } = test;
  return (
    <Alert
      role="status"
      variant="default"
      p="sm"
      icon={<IconCircleCheck size={18} color="var(--tone-good)" aria-hidden />}
      title={`Connected to PostgreSQL ${test.version ?? ""}`}
      styles={{
        root: { background: "var(--tone-good-soft)", borderColor: "var(--tone-good)" },
        title: { color: "var(--tone-good)", fontWeight: 600 },
        message: { color: "var(--text-primary)" },
      }}
    >
      <Stack gap={6}>
        <Text size="sm" className="numeric">
          Round trip {asText(latencyMs(test.latency_ms))}, connected in {asText(latencyMs(test.connect_ms))},{" "}
          {test.tls ? "encrypted" : "not encrypted"}.
        </Text>
        {test.servers.length > 0 && (
          <List size="sm" spacing={2} listStyleType="none" withPadding={false} aria-label="Servers">
            {test.servers.map((server) => (
              <List.Item key={server.address}>
                {server.address}: {server.role ?? server.message}
              </List.Item>
            ))}
          </List>
        )}
        {role && (
          <>
            <Text size="sm">
              Role <strong>{role.name}</strong>:
            </Text>
            <List size="sm" spacing={2} listStyleType="none" withPadding={false}>
              <Fact has={role.superuser || role.replication} text="may replicate (needed at a source)" />
              <Fact
                has={role.superuser || role.create_on_database}
                text="may create schemas and publications"
              />
              <Fact
                has={role.superuser || role.may_set_session_replication_role}
                text="may apply without firing triggers (needed at a destination)"
              />
              {role.superuser && <Fact has text="superuser" />}
            </List>
          </>
        )}
      </Stack>
    </Alert>
  );
}

function Fact({ has, text }: { has: boolean; text: string }) {
  return (
    <List.Item>
      <Group gap={6} wrap="nowrap">
        <ToneIcon tone={has ? "good" : "warning"} size={14} />
        <span>
          {has ? "" : "not: "}
          {text}
        </span>
      </Group>
    </List.Item>
  );
}
