import { Button, PasswordInput, Stack, TextInput } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import { problemInWords } from "@/api/problem-in-words";
import type { Proof } from "@/api/second-factor";
import { FormButtons } from "@/ui/form-buttons";
import { ProblemAlert } from "@/ui/problem-alert";

interface ProofFormProps {
  /** There is a second factor: a code of it is asked for, too. */
  needsCode: boolean;
  onProof: (proof: Proof) => void;
  pending: boolean;
  error: Error | null;
  /** Without it there is no way out. */
  onCancel?: () => void;
  color?: string;
  /** Label of the button. */
  children: string;
}

/** Asks the user of an open session to show that it is theirs. */
export function ProofForm({ needsCode, onProof, pending, error, onCancel, color, children }: ProofFormProps) {
  const [password, setPassword] = useState("");
  const [code, setCode] = useState("");
  const first = useRef<HTMLInputElement>(null);
  useEffect(() => first.current?.focus(), []);
  const disabled = password === "" || (needsCode && code.trim() === "");
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        onProof({ current_password: password, code: needsCode ? code.trim() : null });
        setCode("");
      }}
    >
      <Stack gap="sm">
        {error && <ProblemAlert problem={problemInWords(error)} />}
        <PasswordInput
          ref={first}
          label="Current password"
          autoComplete="current-password"
          value={password}
          onChange={(event) => setPassword(event.currentTarget.value)}
          visibilityToggleButtonProps={{ "aria-label": "Show password" }}
          data-autofocus
        />
        {needsCode && (
          <TextInput
            label="Code"
            description="From your authenticator app, or a recovery code. Each code works once."
            autoComplete="one-time-code"
            value={code}
            onChange={(event) => setCode(event.currentTarget.value)}
          />
        )}
        {onCancel ? (
          <FormButtons onCancel={onCancel} color={color} disabled={disabled} loading={pending}>
            {children}
          </FormButtons>
        ) : (
          <Button type="submit" disabled={disabled} loading={pending} fullWidth>
            {children}
          </Button>
        )}
      </Stack>
    </form>
  );
}
