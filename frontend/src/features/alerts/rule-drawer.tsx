import { Button, Drawer, Group, NumberInput, Select, Stack, Switch, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useForgetStreamRule, useSetRule } from "@/api/alerts";
import { problemInWords } from "@/api/problem-in-words";
import { overviewQuery } from "@/api/streams";
import type { AlertRule, AlertRuleSettings } from "@/api/types";
import { ProblemAlert } from "@/ui/problem-alert";
import { RestCallButton } from "@/ui/rest-call";
import { editedUnit, fromEdited, toEdited } from "./words";

const EVERYWHERE = "";

export function RuleDrawer({ rule, onClose }: { rule: AlertRule | null; onClose: () => void }) {
  const [scope, setScope] = useState(EVERYWHERE);
  const streams = useQuery(overviewQuery).data?.streams ?? [];
  const close = () => {
    setScope(EVERYWHERE);
    onClose();
  };
  return (
    <Drawer opened={rule !== null} onClose={close} title={rule?.title ?? ""}>
      {rule && (
        <Stack gap="sm">
          <Text size="sm">{rule.meaning}</Text>
          <Text size="sm" c="dimmed">
            What to do: {rule.action}
          </Text>
          {rule.per_stream && (
            <Select
              label="Applies to"
              data={[
                { value: EVERYWHERE, label: "Everywhere" },
                ...streams.map(({ id, name }) => ({ value: id, label: `Stream ${name}` })),
              ]}
              value={scope}
              onChange={(value) => setScope(value ?? EVERYWHERE)}
              allowDeselect={false}
            />
          )}
          <RuleForm
            key={`${rule.id} ${scope} ${rule.etag}`}
            rule={rule}
            streamId={scope || null}
            onDone={close}
          />
        </Stack>
      )}
    </Drawer>
  );
}

/** Every field shows what holds; only what differs from the default is kept. */
function RuleForm({
  rule,
  streamId,
  onDone,
}: {
  rule: AlertRule;
  streamId: string | null;
  onDone: () => void;
}) {
  const own = rule.streams.find(({ stream_id }) => stream_id === streamId);
  const now = streamId === null ? rule.effective : (own?.effective ?? rule.effective);
  const wider = streamId === null ? rule.default : rule.effective;
  const [enabled, setEnabled] = useState(now.enabled);
  const [severity, setSeverity] = useState(now.severity);
  const [hold, setHold] = useState<number | string>(now.hold_seconds);
  const [thresholds, setThresholds] = useState<Record<string, number | string>>(() =>
    Object.fromEntries(
      rule.thresholds.map(({ name, unit, default: fallback }) => [
        name,
        toEdited(now.thresholds[name] ?? fallback, unit),
      ]),
    ),
  );
  const set = useSetRule();
  const forget = useForgetStreamRule();
  const valid = [hold, ...Object.values(thresholds)].every(
    (value) => value !== "" && Number.isFinite(Number(value)),
  );
  const changed = rule.thresholds
    .map(({ name, unit }) => [name, fromEdited(Number(thresholds[name]), unit)] as const)
    .filter(([name, value]) => value !== wider.thresholds[name]);
  const body: AlertRuleSettings = {
    enabled: enabled === wider.enabled ? null : enabled,
    severity: severity === wider.severity ? null : severity,
    hold_seconds: Number(hold) === wider.hold_seconds ? null : Number(hold),
    thresholds: Object.fromEntries(changed),
  };
  const path = `/api/v1/alerts/rules/${rule.id}${streamId === null ? "" : `/streams/${streamId}`}`;
  const reset = () =>
    streamId === null
      ? set.mutate({ rule, streamId, body: { thresholds: {} } }, { onSuccess: onDone })
      : forget.mutate({ rule: rule.id, streamId }, { onSuccess: onDone });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (valid) set.mutate({ rule, streamId, body }, { onSuccess: onDone });
      }}
    >
      <Stack gap="sm">
        <Switch label="On" checked={enabled} onChange={(event) => setEnabled(event.currentTarget.checked)} />
        {rule.thresholds.map(({ name, label, unit, minimum, maximum, default: fallback }, place) => (
          <NumberInput
            key={name}
            data-autofocus={place === 0 || undefined}
            label={label}
            description={`Default: ${toEdited(fallback, unit)} ${editedUnit(unit)}`}
            suffix={` ${editedUnit(unit)}`}
            min={toEdited(minimum, unit)}
            max={toEdited(maximum, unit)}
            value={thresholds[name]}
            onChange={(value) => setThresholds((before) => ({ ...before, [name]: value }))}
          />
        ))}
        <NumberInput
          label="Hold-down time"
          description={`How long the condition must hold before the alert fires. Default: ${rule.default.hold_seconds} s`}
          suffix=" s"
          min={0}
          max={86400}
          value={hold}
          onChange={setHold}
        />
        <Select
          label="Severity"
          data={[
            { value: "warning", label: "Warning" },
            { value: "critical", label: "Critical" },
          ]}
          value={severity}
          onChange={(value) => value && setSeverity(value as typeof severity)}
          allowDeselect={false}
        />
        {set.isError && <ProblemAlert problem={problemInWords(set.error)} />}
        {forget.isError && <ProblemAlert problem={problemInWords(forget.error)} />}
        <Group justify="space-between" mt="xs">
          <Button
            variant="default"
            disabled={streamId !== null && own === undefined}
            loading={forget.isPending}
            onClick={reset}
          >
            {streamId === null ? "Restore the defaults" : "Use the common settings"}
          </Button>
          <Group gap="xs">
            <RestCallButton
              calls={[
                {
                  method: "PUT",
                  path,
                  ...(streamId === null ? { headers: { "If-Match": rule.etag } } : {}),
                  body,
                },
              ]}
            />
            <Button type="submit" disabled={!valid} loading={set.isPending}>
              Save
            </Button>
          </Group>
        </Group>
      </Stack>
    </form>
  );
}
