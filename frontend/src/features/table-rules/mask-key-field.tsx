import { PasswordInput } from "@mantine/core";
import type { TableRules } from "@/api/types";
import { faultOfMaskKey, needsKey } from "./mask-key";

export interface MaskKey {
  value: string;
  onChange: (key: string) => void;
  /** The stream has one. */
  isSet: boolean;
}

/** Only where the rules have a mask that needs it. */
export function MaskKeyField({ rules, value, onChange, isSet }: MaskKey & { rules: TableRules }) {
  if (!needsKey(rules)) return null;
  return (
    <PasswordInput
      label="Masking key"
      description={
        isSet
          ? "Leave empty to keep the stored key. Another key masks later values differently."
          : "Leave empty to have Thalweg make one. Streams with the same key give equal values equal masks."
      }
      autoComplete="new-password"
      maw={520}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
      error={faultOfMaskKey(rules, value)}
    />
  );
}
