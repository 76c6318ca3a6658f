import { Box, Button, Image, Stack, Text, TextInput } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import { problemInWords } from "@/api/problem-in-words";
import { useConfirmSecondFactor, usePrepareSecondFactor } from "@/api/second-factor";
import type { SecondFactorDraft } from "@/api/types";
import { CopyBlock } from "@/ui/copy-block";
import { FormButtons } from "@/ui/form-buttons";
import { ProblemAlert } from "@/ui/problem-alert";
import { ProofForm } from "./proof-form";
import { RecoveryCodes } from "./recovery-codes";

interface SecondFactorSetupProps {
  userId: string;
  /** There is one already, which the new one replaces. */
  replaces: boolean;
  onDone: () => void;
  onCancel?: () => void;
}

/** Three steps: the password, the authenticator with a code that confirms it, the recovery codes. */
export function SecondFactorSetup({ userId, replaces, onDone, onCancel }: SecondFactorSetupProps) {
  const prepare = usePrepareSecondFactor(userId);
  const confirm = useConfirmSecondFactor(userId);
  if (confirm.data) return <RecoveryCodes codes={confirm.data.codes} onDone={onDone} />;
  if (!prepare.data) {
    return (
      <ProofForm
        needsCode={replaces}
        onProof={(proof) => prepare.mutate(proof)}
        pending={prepare.isPending}
        error={prepare.error}
        onCancel={onCancel}
      >
        Continue
      </ProofForm>
    );
  }
  return (
    <Authenticator
      draft={prepare.data}
      onCode={(code) => confirm.mutate(code)}
      pending={confirm.isPending}
      error={confirm.error}
      onCancel={onCancel}
    />
  );
}

interface AuthenticatorProps {
  draft: SecondFactorDraft;
  onCode: (code: string) => void;
  pending: boolean;
  error: Error | null;
  onCancel?: () => void;
}

function Authenticator({ draft, onCode, pending, error, onCancel }: AuthenticatorProps) {
  const [code, setCode] = useState("");
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  const disabled = code.trim() === "";
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        onCode(code.trim());
        setCode("");
      }}
    >
      <Stack gap="sm">
        <Text size="sm">
          Scan the code with an authenticator app, or type the secret into it. Then enter the six digits that
          it shows.
        </Text>
        <Box ta="center">
          <Image
            src={draft.qr_code}
            alt="QR code of the secret, for an authenticator app"
            w={220}
            h={220}
            mx="auto"
            radius="sm"
          />
        </Box>
        <CopyBlock text={draft.secret} label="Secret" copyLabel="Copy secret" />
        {error && <ProblemAlert problem={problemInWords(error)} />}
        <TextInput
          ref={field}
          label="Code from the app"
          autoComplete="one-time-code"
          inputMode="numeric"
          value={code}
          onChange={(event) => setCode(event.currentTarget.value)}
        />
        {onCancel ? (
          <FormButtons onCancel={onCancel} disabled={disabled} loading={pending}>
            Switch on
          </FormButtons>
        ) : (
          <Button type="submit" disabled={disabled} loading={pending} fullWidth>
            Switch on
          </Button>
        )}
      </Stack>
    </form>
  );
}
