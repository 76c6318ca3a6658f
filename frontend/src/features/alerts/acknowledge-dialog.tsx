import { Modal, Stack, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { useAcknowledge } from "@/api/alerts";
import { problemInWords } from "@/api/problem-in-words";
import type { Alert } from "@/api/types";
import { FormButtons } from "@/ui/form-buttons";
import { ProblemAlert } from "@/ui/problem-alert";
import { RestCall } from "@/ui/rest-call";

interface AcknowledgeDialogProps {
  alert: Alert;
  opened: boolean;
  onClose: () => void;
}

/** Says that somebody takes care, and, if they like, what they do about it. */
export function AcknowledgeDialog({ alert, opened, onClose }: AcknowledgeDialogProps) {
  return (
    <Modal opened={opened} onClose={onClose} title="Acknowledge alert" closeOnClickOutside={false}>
      <AcknowledgeForm alert={alert} onClose={onClose} />
    </Modal>
  );
}

function AcknowledgeForm({ alert, onClose }: Pick<AcknowledgeDialogProps, "alert" | "onClose">) {
  const acknowledge = useAcknowledge();
  const [note, setNote] = useState("");
  const body = { note: note.trim() };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        acknowledge.mutate({ id: alert.id, note: body.note, undo: false }, { onSuccess: onClose });
      }}
    >
      <Stack gap="sm">
        <Text size="sm">
          You are taking care of “{alert.title}”. The bell stops counting it; the alert stays open until its
          cause is gone.
        </Text>
        {acknowledge.isError && <ProblemAlert problem={problemInWords(acknowledge.error)} />}
        <TextInput
          label="Note"
          description="Optional. Tells others what is being done, and until when."
          data-autofocus
          maxLength={NOTE_MAX}
          value={note}
          onChange={(event) => setNote(event.currentTarget.value)}
        />
        <RestCall call={{ method: "POST", path: `/api/v1/alerts/${alert.id}/acknowledge`, body }} />
        <FormButtons onCancel={onClose} loading={acknowledge.isPending}>
          Acknowledge
        </FormButtons>
      </Stack>
    </form>
  );
}

const NOTE_MAX = 1000;
