import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { problemInWords } from "@/api/problem-in-words";
import {
  secondFactorQuery,
  useRemoveSecondFactor,
  useRenewRecoveryCodes,
  useSecondFactorChanged,
} from "@/api/second-factor";
import type { SecondFactor as State } from "@/api/types";
import { formatTime } from "@/lib/format";
import { Panel } from "@/ui/panel";
import { QueryFaces } from "@/ui/query-faces";
import { ToneBadge } from "@/ui/tone";
import { ProofForm } from "./proof-form";
import { RecoveryCodes } from "./recovery-codes";
import { SecondFactorSetup } from "./second-factor-setup";
import { secondFactorInWords } from "./second-factor-words";

type Dialog = "setup" | "renew" | "remove" | null;
const titles = {
  setup: "Set up a second factor",
  renew: "New recovery codes",
  remove: "Switch the second factor off",
};
const RECOVERY_CODES_FEW = 3;

/** Your own: its state, and what can be done about it. */
export function SecondFactor({ userId }: { userId: string }) {
  const state = useQuery(secondFactorQuery(userId));
  const changed = useSecondFactorChanged();
  const [dialog, setDialog] = useState<Dialog>(null);
  const close = () => {
    setDialog(null);
    void changed();
  };
  return (
    <Panel
      title="Second factor"
      aside={state.data && <ToneBadge compact state={secondFactorInWords(state.data.enabled)} />}
    >
      <QueryFaces query={state} inWords={problemInWords} loadingLabel="Loading the second factor">
        {(known) => <Summary state={known} onChoose={setDialog} />}
      </QueryFaces>
      <Modal
        opened={dialog !== null}
        onClose={close}
        // The recovery codes are shown once: neither a click beside them nor Escape must close them.
        closeOnClickOutside={false}
        closeOnEscape={false}
        title={dialog ? titles[dialog] : ""}
      >
        {dialog === "setup" && (
          <SecondFactorSetup
            userId={userId}
            replaces={state.data?.enabled ?? false}
            onDone={close}
            onCancel={close}
          />
        )}
        {dialog === "renew" && <Renewal userId={userId} onDone={close} />}
        {dialog === "remove" && <Removal userId={userId} onDone={close} />}
      </Modal>
    </Panel>
  );
}

function Summary({ state, onChoose }: { state: State; onChoose: (dialog: Dialog) => void }) {
  if (!state.enabled) {
    return (
      <Stack gap="sm">
        <Text size="sm">
          With it, logging in takes your password and a code from your authenticator app. API tokens need no
          code.
        </Text>
        <Group justify="flex-end">
          <Button onClick={() => onChoose("setup")}>Set up</Button>
        </Group>
      </Stack>
    );
  }
  const left = state.recovery_codes_left;
  return (
    <Stack gap="sm">
      <Text size="sm">
        Since {formatTime(state.since)}. {left === 1 ? "1 recovery code is" : `${left} recovery codes are`}{" "}
        left.
        {left < RECOVERY_CODES_FEW && " Create new ones before you need them."}
        {state.demanded && " An admin requires a second factor: you can replace it, but not switch it off."}
      </Text>
      <Group justify="flex-end" gap="xs">
        {!state.demanded && (
          <Button variant="default" onClick={() => onChoose("remove")}>
            Switch off
          </Button>
        )}
        <Button variant="default" onClick={() => onChoose("renew")}>
          New recovery codes
        </Button>
        <Button variant="default" onClick={() => onChoose("setup")}>
          Another device
        </Button>
      </Group>
    </Stack>
  );
}

function Renewal({ userId, onDone }: { userId: string; onDone: () => void }) {
  const renew = useRenewRecoveryCodes(userId);
  if (renew.data) return <RecoveryCodes codes={renew.data.codes} onDone={onDone} />;
  return (
    <Stack gap="sm">
      <Text size="sm">Your present recovery codes will stop working.</Text>
      <ProofForm
        needsCode
        onProof={(proof) => renew.mutate(proof)}
        pending={renew.isPending}
        error={renew.error}
        onCancel={onDone}
      >
        Create new codes
      </ProofForm>
    </Stack>
  );
}

function Removal({ userId, onDone }: { userId: string; onDone: () => void }) {
  const remove = useRemoveSecondFactor(userId);
  return (
    <Stack gap="sm">
      <Text size="sm">Logging in will then take your password alone. Your other sessions end.</Text>
      <ProofForm
        needsCode
        onProof={(proof) =>
          remove.mutate(proof, {
            onSuccess: () => {
              notifications.show({ message: "The second factor was switched off." });
              onDone();
            },
          })
        }
        pending={remove.isPending}
        error={remove.error}
        onCancel={onDone}
        color="red"
      >
        Switch off
      </ProofForm>
    </Stack>
  );
}
