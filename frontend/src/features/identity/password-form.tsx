import { Button, Checkbox, Group, PasswordInput, Stack } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useState } from "react";
import { useChangePassword } from "@/api/identity";
import { problemInWords } from "@/api/problem-in-words";
import { ProblemAlert } from "@/ui/problem-alert";

export const PASSWORD_LENGTH_MIN = 10;

interface PasswordFormProps {
  userId: string;
  /** Your own password asks for the current one. */
  needsCurrent: boolean;
  onDone?: () => void;
}

export function PasswordForm({ userId, needsCurrent, onDone }: PasswordFormProps) {
  const change = useChangePassword();
  const [current, setCurrent] = useState("");
  const [next, setNext] = useState("");
  const [revokes, setRevokes] = useState(false);
  const tooShort = next !== "" && next.length < PASSWORD_LENGTH_MIN;
  const toggle = { visibilityToggleButtonProps: { "aria-label": "Show password" } };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        change.mutate(
          {
            id: userId,
            body: {
              current_password: needsCurrent ? current : null,
              new_password: next,
              revoke_tokens: revokes,
            },
          },
          {
            onSuccess: () => {
              setCurrent("");
              setNext("");
              notifications.show({ message: "The password was changed." });
              onDone?.();
            },
          },
        );
      }}
    >
      <Stack gap="sm">
        {change.isError && <ProblemAlert problem={problemInWords(change.error)} />}
        {needsCurrent && (
          <PasswordInput
            label="Current password"
            autoComplete="current-password"
            value={current}
            onChange={(event) => setCurrent(event.currentTarget.value)}
            {...toggle}
          />
        )}
        <PasswordInput
          data-autofocus={!needsCurrent || undefined}
          label="New password"
          autoComplete="new-password"
          description={`At least ${PASSWORD_LENGTH_MIN} characters.`}
          error={tooShort ? "Too short." : undefined}
          value={next}
          onChange={(event) => setNext(event.currentTarget.value)}
          {...toggle}
        />
        <Checkbox
          label="Also revoke all API tokens"
          description="Do this if somebody else may have known the password: they may have created tokens with it."
          checked={revokes}
          onChange={(event) => setRevokes(event.currentTarget.checked)}
        />
        <Group justify="flex-end">
          <Button
            type="submit"
            disabled={next.length < PASSWORD_LENGTH_MIN || (needsCurrent && current === "")}
            loading={change.isPending}
          >
            Change password
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
