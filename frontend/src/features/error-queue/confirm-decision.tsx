import { Modal, Stack, Text } from "@mantine/core";
import { useState } from "react";
import type { ParkedTransaction } from "@/api/types";
import { counted, formatCount } from "@/lib/format";
import { FormButtons } from "@/ui/form-buttons";
import { isReasonShort, ReasonInput } from "@/ui/reason-input";
import { RestCall } from "@/ui/rest-call";
import { DryRun } from "./dry-run";
import { editsInWords } from "./edits-in-words";
import { asRole, RoleInput } from "./role-input";

const MANY_CHANGES = 10_000;

export interface Decision {
  error: ParkedTransaction;
  /** False: it is applied again. */
  discards: boolean;
}

interface ConfirmDecisionProps extends Decision {
  streamId: string;
  destinationId: string;
  path: string;
  onClose: () => void;
  /** The reason, where it is discarded; else the role, perhaps empty. */
  onConfirm: (reason: string | null, role: string) => void;
}

/** Says what will happen to the destination before it does. Discarding asks why: the audit log keeps it. */
export function ConfirmDecision(props: ConfirmDecisionProps) {
  const { error, discards, path, onClose, onConfirm } = props;
  const [reason, setReason] = useState("");
  const [role, setRole] = useState("");
  const verb = discards ? "Discard" : "Execute";
  const changes = counted(error.lcrs, "change");
  const tables = error.tables.join(", ");
  const call = discards
    ? { method: "DELETE" as const, path: `${path}/${error.id}?reason=${encodeURIComponent(reason.trim())}` }
    : { method: "POST" as const, path: `${path}/${error.id}/execute`, body: asRole(role) };
  return (
    <Modal opened onClose={onClose} title={`${verb} transaction ${error.xid}`} size="lg">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          onConfirm(discards ? reason.trim() : null, role);
        }}
      >
        <Stack gap="sm">
          <Text size="sm">
            {discards
              ? `Its ${changes} will never be applied at the destination, so the two databases will differ in ${tables}. The audit log keeps them. This can take a minute for ${formatCount(MANY_CHANGES)} changes; if it cannot keep all of them, you are asked whether a part is enough.`
              : error.left_out === error.lcrs
                ? `Takes it out of the queue without applying anything: all its ${changes} are left out. Then executes the transactions that wait behind it, in the source's order.`
                : `Applies its ${changes} in ${tables} now, then the transactions that wait behind it, in the source's order. Transactions that fail again stay parked.${editsInWords(error)}`}
          </Text>
          {!discards && (
            <>
              <RoleInput role={role} onChange={setRole} />
              <DryRun
                streamId={props.streamId}
                destinationId={props.destinationId}
                errorId={error.id}
                path={path}
                role={role}
              />
            </>
          )}
          {discards && (
            <ReasonInput
              description="Recorded in the audit log."
              value={reason}
              onChange={setReason}
              required
            />
          )}
          <RestCall call={call} />
          <FormButtons
            onCancel={onClose}
            color={discards ? "red" : undefined}
            disabled={discards && isReasonShort(reason)}
          >
            {verb}
          </FormButtons>
        </Stack>
      </form>
    </Modal>
  );
}
