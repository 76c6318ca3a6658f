import { Autocomplete, NumberInput, Select } from "@mantine/core";
import type { ErrorPolicy } from "@/api/types";
import { EntryList, TableFields } from "./entry-list";
import { policyFault } from "./parameter-values";

interface ErrorPoliciesProps {
  policies: ErrorPolicy[];
  onChange: (policies: ErrorPolicy[]) => void;
  disabled?: boolean;
}

export const KNOWN_ERRORS = [
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
  return (
    <EntryList
      entries={policies}
      onChange={onChange}
      noun="policy"
      addLabel="Add a policy"
      blank={{ action: "park" }}
      faultOf={(index) => policyFault(policies[index] as ErrorPolicy)}
      isOrdered
      disabled={disabled}
    >
      {(policy, put) => <Policy policy={policy} disabled={disabled} onChange={put} />}
    </EntryList>
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
      <TableFields entry={policy} onChange={onChange} disabled={disabled} />
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
