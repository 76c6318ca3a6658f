import { Button, Modal, Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";
import type { RestCallSpec } from "@/lib/curl";
import classes from "./form-buttons.module.css";
import { RestCall } from "./rest-call";

interface ConfirmStopProps {
  opened: boolean;
  onClose: () => void;
  /** Label of the button. */
  verb?: string;
  name: string;
  call: RestCallSpec;
  onConfirm: () => void;
  /** Consequences of the action. */
  children: ReactNode;
}

/** For what can be undone but is felt at once. */
export function ConfirmStop({
  opened,
  onClose,
  verb = "Stop",
  name,
  call,
  onConfirm,
  children,
}: ConfirmStopProps) {
  return (
    <Modal opened={opened} onClose={onClose} title={`${verb} ${name}`} size="lg">
      <Stack gap="sm">
        <Text size="sm">{children}</Text>
        <RestCall call={call} />
        <div className={classes.buttons}>
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button onClick={onConfirm} data-autofocus>
            {verb}
          </Button>
        </div>
      </Stack>
    </Modal>
  );
}
