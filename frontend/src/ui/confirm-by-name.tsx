import { Checkbox, Modal, Stack, Text, TextInput } from "@mantine/core";
import { type ReactNode, useState } from "react";
import type { RestCallSpec } from "@/lib/curl";
import { FormButtons } from "@/ui/form-buttons";
import { ProblemAlert } from "./problem-alert";
import { RestCall } from "./rest-call";

interface ConfirmByNameProps {
  opened: boolean;
  onClose: () => void;
  title: string;
  name: string;
  children: ReactNode;
  /** Label of the button. */
  verb?: string;
  /** A remark above the choice of force. */
  note?: string | false;
  /** When given, a check box with this explanation is offered and its value handed to onConfirm. */
  forceExplanation?: ReactNode;
  onConfirm: (force: boolean) => void;
  pending: boolean;
  problem?: ReactNode;
  call: (force: boolean) => RestCallSpec;
}

/** For what cannot be undone: the name must be typed. */
export function ConfirmByName(props: ConfirmByNameProps) {
  const [typed, setTyped] = useState("");
  const [force, setForce] = useState(false);
  const close = () => {
    setTyped("");
    setForce(false);
    props.onClose();
  };
  return (
    <Modal opened={props.opened} onClose={close} title={props.title} size="lg">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (typed === props.name) props.onConfirm(force);
        }}
      >
        <Stack gap="sm">
          <Text size="sm" component="div">
            {props.children}
          </Text>
          {props.note && <ProblemAlert tone="warning" problem={{ title: props.note }} />}
          {props.forceExplanation && (
            <Checkbox
              label="Force"
              description={props.forceExplanation}
              checked={force}
              onChange={(event) => setForce(event.currentTarget.checked)}
            />
          )}
          <TextInput
            label={`Type ${props.name} to confirm`}
            value={typed}
            onChange={(event) => setTyped(event.currentTarget.value)}
            autoComplete="off"
            data-autofocus
          />
          {props.problem}
          <RestCall call={props.call(force)} />
          <FormButtons onCancel={close} color="red" disabled={typed !== props.name} loading={props.pending}>
            {props.verb ?? "Delete"}
          </FormButtons>
        </Stack>
      </form>
    </Modal>
  );
}
