import { TextInput } from "@mantine/core";

const LENGTH_MIN = 3;
const LENGTH_MAX = 1000;

/** Whether the API would refuse it. */
export const isReasonShort = (reason: string) => reason.trim().length < LENGTH_MIN;

interface ReasonInputProps {
  value: string;
  onChange: (value: string) => void;
  description: string;
  required?: boolean;
  /** Of the dialogue, which gives it the focus. */
  asks?: boolean;
}

/** The reason of an operator, which the audit log keeps. */
export function ReasonInput({ value, onChange, description, required, asks = true }: ReasonInputProps) {
  return (
    <TextInput
      label="Reason"
      description={description}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
      minLength={LENGTH_MIN}
      maxLength={LENGTH_MAX}
      required={required}
      data-autofocus={asks || undefined}
    />
  );
}
