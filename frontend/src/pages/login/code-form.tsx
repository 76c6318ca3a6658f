import { Button, Stack, TextInput } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import { asProblem } from "@/api/problem";
import { problemInWords } from "@/api/problem-in-words";
import { useVerifyCode } from "@/api/session";
import { ProblemAlert } from "@/ui/problem-alert";

interface CodeFormProps {
  onLoggedIn: () => void;
  /** To the name and the password again. */
  onBack: () => void;
}

/** The login's second step. */
export function CodeForm({ onLoggedIn, onBack }: CodeFormProps) {
  const verify = useVerifyCode();
  const [code, setCode] = useState("");
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  const expired = verify.isError && asProblem(verify.error).code === "login_expired";
  return (
    <form
      className="panel"
      style={{ padding: 20 }}
      onSubmit={(event) => {
        event.preventDefault();
        verify.mutate(code.trim(), { onSuccess: onLoggedIn });
        setCode("");
        field.current?.focus();
      }}
    >
      <Stack gap="sm">
        {verify.isError && <ProblemAlert problem={problemInWords(verify.error)} />}
        <TextInput
          ref={field}
          label="Code"
          description="Six digits from your authenticator app, or a recovery code."
          autoComplete="one-time-code"
          autoCapitalize="none"
          value={code}
          onChange={(event) => setCode(event.currentTarget.value)}
        />
        <Button
          type="submit"
          size="sm"
          disabled={code.trim() === "" || expired}
          loading={verify.isPending}
          fullWidth
          mt={4}
        >
          Verify
        </Button>
        <Button variant="subtle" onClick={onBack} fullWidth>
          Back to the password
        </Button>
      </Stack>
    </form>
  );
}
