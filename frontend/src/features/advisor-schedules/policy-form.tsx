import { Button, Group, NumberInput, SimpleGrid, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { policyQuery, useUpdatePolicy } from "@/api/advisor-schedules";
import { problemInWords } from "@/api/problem-in-words";
import type { Policy, PolicyUpdate } from "@/api/types";
import { Panel } from "@/ui/panel";
import { ProblemAlert } from "@/ui/problem-alert";
import { QueryFaces } from "@/ui/query-faces";
import { RestCallButton } from "@/ui/rest-call";

/** How long runs are kept, and when a component counts as a bottleneck. */
export function PolicyForm({ mayAct }: { mayAct: boolean }) {
  const query = useQuery(policyQuery);
  return (
    <Panel title="Retention and thresholds">
      <QueryFaces query={query} inWords={problemInWords} rows={3} loadingLabel="Loading the policy">
        {(policy) => <Fields key={policy.etag} policy={policy} mayAct={mayAct} />}
      </QueryFaces>
    </Panel>
  );
}

type Values = Record<
  "retention_days" | "runs_max" | "idle_threshold" | "flow_control_threshold" | "event_threshold",
  number | string
>;

const fields: {
  key: keyof Values;
  label: string;
  description: string;
  suffix: string;
  min: number;
  max: number;
}[] = [
  {
    key: "retention_days",
    label: "Keep runs for",
    description: "Runs marked as kept stay.",
    suffix: " days",
    min: 1,
    max: 3650,
  },
  {
    key: "runs_max",
    label: "Keep at most",
    description: "The oldest are removed first.",
    suffix: " runs",
    min: 10,
    max: 1_000_000,
  },
  {
    key: "idle_threshold",
    label: "Idle at most",
    description: "A component that is idle for longer is not a bottleneck.",
    suffix: " %",
    min: 0,
    max: 100,
  },
  {
    key: "flow_control_threshold",
    label: "Flow control at most",
    description: "A component that is held back for longer is a victim, not the cause.",
    suffix: " %",
    min: 0,
    max: 100,
  },
  {
    key: "event_threshold",
    label: "Report waits above",
    description: "Waits with a smaller share of the time are not reported.",
    suffix: " %",
    min: 0,
    max: 100,
  },
];

function Fields({ policy, mayAct }: { policy: Policy; mayAct: boolean }) {
  const update = useUpdatePolicy();
  const stored: Values = {
    retention_days: policy.retention_days,
    runs_max: policy.runs_max,
    idle_threshold: policy.thresholds.idle,
    flow_control_threshold: policy.thresholds.flow_control,
    event_threshold: policy.thresholds.event,
  };
  const [values, setValues] = useState(stored);
  const changed = fields.filter(({ key }) => Number(values[key]) !== stored[key]);
  const valid = fields.every(
    ({ key, min, max }) => values[key] !== "" && Number(values[key]) >= min && Number(values[key]) <= max,
  );
  const body: PolicyUpdate = Object.fromEntries(changed.map(({ key }) => [key, Number(values[key])]));
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (valid) update.mutate({ body, etag: policy.etag });
      }}
    >
      <Stack gap="sm">
        <SimpleGrid cols={{ base: 2, lg: 5 }}>
          {fields.map(({ key, label, description, suffix, min, max }) => (
            <NumberInput
              key={key}
              label={label}
              description={description}
              suffix={suffix}
              min={min}
              max={max}
              disabled={!mayAct}
              value={values[key]}
              onChange={(value) => setValues((now) => ({ ...now, [key]: value }))}
              inputWrapperOrder={["label", "input", "description", "error"]}
            />
          ))}
        </SimpleGrid>
        {update.isError && <ProblemAlert problem={problemInWords(update.error)} />}
        <Group justify="flex-end" gap="xs">
          <Text size="xs" c="dimmed">
            {changed.length === 0 ? "Nothing changed" : `${changed.length} changed`}
          </Text>
          <RestCallButton
            calls={[
              { method: "PATCH", path: "/api/v1/advisor/policy", headers: { "If-Match": policy.etag }, body },
            ]}
          />
          <Button
            type="submit"
            disabled={!mayAct || !valid || changed.length === 0}
            loading={update.isPending}
          >
            Save
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
