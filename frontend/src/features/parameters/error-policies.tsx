import {
  ActionIcon,
  Autocomplete,
  Button,
  Group,
  NumberInput,
  Select,
  Stack,
  Text,
  TextInput,
} from "@mantine/core";
import { IconArrowDown, IconArrowUp, IconTrash } from "@tabler/icons-react";
import type { ErrorPolicy } from "@/api/types";
import classes from "./error-policies.module.css";
import { withOptional } from "./optional-member";
import { policyFault } from "./parameter-values";

interface ErrorPoliciesProps {
  policies: ErrorPolicy[];
  onChange: (policies: ErrorPolicy[]) => void;
  disabled?: boolean;
}

const KNOWN_ERRORS = [
  "23",
  "22",
  "23502",
  "23503",
  "23505",
  "apply_conflict",
  "apply_failed",
  "initial_copy_inconsistent",
];
const ACTIONS = [
  { value: "stop", label: "Stop the stream" },
  { value: "park", label: "Park the transaction" },
  { value: "skip", label: "Skip the row" },
  { value: "retry", label: "Retry" },
];
const AFTER_RETRIES = ACTIONS.filter(({ value }) => value !== "retry");
const RETRY = { times: 5, delay_seconds: 10, after_retries: "park" } as const;

/** Policies for transactions that fail, by their error: the first that matches decides. */
export function ErrorPolicies({ policies, onChange, disabled }: ErrorPoliciesProps) {
  const put = (index: number, policy: ErrorPolicy) => onChange(policies.with(index, policy));
  const swap = (index: number, other: number) =>
    onChange(
      policies.with(index, policies[other] as ErrorPolicy).with(other, policies[index] as ErrorPolicy),
    );
  return (
    <Stack gap="xs" className={classes.list}>
      {policies.map((policy, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a policy has no other name than its place
        <Group key={index} component="fieldset" gap="xs" align="flex-start" className={classes.policy}>
          <legend className={classes.legend}>Policy {index + 1}</legend>
          <Policy policy={policy} disabled={disabled} onChange={(changed) => put(index, changed)} />
          <Group gap={4} ml="auto">
            <ActionIcon
              variant="subtle"
              aria-label={`Move policy ${index + 1} up`}
              disabled={disabled || index === 0}
              onClick={() => swap(index, index - 1)}
            >
              <IconArrowUp size={14} aria-hidden />
            </ActionIcon>
            <ActionIcon
              variant="subtle"
              aria-label={`Move policy ${index + 1} down`}
              disabled={disabled || index === policies.length - 1}
              onClick={() => swap(index, index + 1)}
            >
              <IconArrowDown size={14} aria-hidden />
            </ActionIcon>
            <ActionIcon
              variant="subtle"
              aria-label={`Remove policy ${index + 1}`}
              disabled={disabled}
              onClick={() => onChange(policies.toSpliced(index, 1))}
            >
              <IconTrash size={14} aria-hidden />
            </ActionIcon>
          </Group>
          {policyFault(policy) && (
            <Text size="xs" c="var(--bad)" w="100%">
              {policyFault(policy)}
            </Text>
          )}
        </Group>
      ))}
      <Button
        variant="default"
        size="xs"
        disabled={disabled}
        onClick={() => onChange([...policies, { action: "park" }])}
        style={{ alignSelf: "flex-start" }}
      >
        Add a policy
      </Button>
    </Stack>
  );
}

interface PolicyProps {
  policy: ErrorPolicy;
  onChange: (policy: ErrorPolicy) => void;
  disabled?: boolean;
}

function Policy({ policy, onChange, disabled }: PolicyProps) {
  const { error, schema, table, action } = policy;
  const ofError = error === undefined ? {} : { error };
  const ofTable = {
    ...(schema === undefined ? {} : { schema }),
    ...(table === undefined ? {} : { table }),
  };
  const act = (chosen: string | null) => {
    if (chosen === "retry") onChange({ ...ofError, ...ofTable, action: "retry", ...RETRY });
    if (chosen === "stop" || chosen === "park" || chosen === "skip")
      onChange({ ...ofError, ...ofTable, action: chosen });
  };
  const name = (part: "schema" | "table", text: string) => onChange(withOptional(policy, part, text));
  return (
    <>
      <Autocomplete
        label="Error"
        placeholder="any"
        w={180}
        data={KNOWN_ERRORS}
        value={error ?? ""}
        disabled={disabled}
        onChange={(text) => {
          const { error: _, ...others } = policy;
          onChange(text === "" ? others : { ...others, error: text });
        }}
      />
      <TextInput
        label="Schema"
        placeholder="any"
        w={110}
        value={schema ?? ""}
        disabled={disabled}
        onChange={(event) => name("schema", event.currentTarget.value)}
      />
      <TextInput
        label="Table"
        placeholder="any"
        w={140}
        value={table ?? ""}
        disabled={disabled}
        onChange={(event) => name("table", event.currentTarget.value)}
      />
      <Select
        label="Action"
        w={180}
        data={ACTIONS}
        value={action}
        allowDeselect={false}
        disabled={disabled}
        onChange={act}
      />
      {action === "retry" && (
        <>
          <NumberInput
            label="Times"
            w={80}
            value={policy.times ?? ""}
            min={1}
            max={100}
            clampBehavior="none"
            allowDecimal={false}
            disabled={disabled}
            onChange={(times) => onChange({ ...policy, times: Number(times) })}
          />
          <NumberInput
            label="Delay"
            w={90}
            value={policy.delay_seconds ?? ""}
            min={0}
            max={3600}
            suffix=" s"
            clampBehavior="none"
            allowDecimal={false}
            disabled={disabled}
            onChange={(delay) => onChange({ ...policy, delay_seconds: Number(delay) })}
          />
          <Select
            label="Then"
            w={180}
            data={AFTER_RETRIES}
            value={policy.after_retries ?? null}
            allowDeselect={false}
            disabled={disabled}
            onChange={(next) =>
              (next === "stop" || next === "park" || next === "skip") &&
              onChange({ ...policy, after_retries: next })
            }
          />
        </>
      )}
    </>
  );
}
