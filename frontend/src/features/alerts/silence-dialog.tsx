import { Modal, Select, Stack, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { alertRulesQuery, useCreateSilence } from "@/api/alerts";
import { problemInWords } from "@/api/problem-in-words";
import { overviewQuery } from "@/api/streams";
import type { AlertRule } from "@/api/types";
import { FormButtons } from "@/ui/form-buttons";
import { ProblemAlert } from "@/ui/problem-alert";
import { RestCall } from "@/ui/rest-call";

interface SilenceDialogProps {
  opened: boolean;
  rule: AlertRule["id"] | null;
  streamId: string | null;
  onClose: () => void;
}

const durations = [
  { value: "1800", label: "30 minutes" },
  { value: "7200", label: "2 hours" },
  { value: "28800", label: "8 hours" },
  { value: "86400", label: "1 day" },
  { value: "604800", label: "7 days" },
];

export function SilenceDialog(props: SilenceDialogProps) {
  return (
    <Modal opened={props.opened} onClose={props.onClose} title="Silence alerts" closeOnClickOutside={false}>
      <SilenceForm key={`${props.rule} ${props.streamId}`} {...props} />
    </Modal>
  );
}

function SilenceForm({ rule, streamId, onClose }: SilenceDialogProps) {
  const create = useCreateSilence();
  const rules = useQuery(alertRulesQuery).data ?? [];
  const streams = useQuery(overviewQuery).data?.streams ?? [];
  const [chosenRule, setRule] = useState<string | null>(rule);
  const [chosenStream, setStream] = useState<string | null>(streamId);
  const [seconds, setSeconds] = useState("7200");
  const [reason, setReason] = useState("");
  const body = {
    rule: chosenRule as AlertRule["id"] | null,
    stream_id: chosenStream,
    seconds: Number(seconds),
    reason: reason.trim(),
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        create.mutate(body, { onSuccess: onClose });
      }}
    >
      <Stack gap="sm">
        {create.isError && <ProblemAlert problem={problemInWords(create.error)} />}
        <Select
          label="Alert rule"
          placeholder="Every alert rule"
          clearable
          data={rules.map(({ id, title }) => ({ value: id, label: title }))}
          value={chosenRule}
          onChange={setRule}
        />
        <Select
          label="Stream"
          placeholder="Everything"
          clearable
          data={streams.map(({ id, name }) => ({ value: id, label: name }))}
          value={chosenStream}
          onChange={setStream}
        />
        <Select
          label="For"
          data={durations}
          value={seconds}
          onChange={(value) => value && setSeconds(value)}
          allowDeselect={false}
        />
        <TextInput
          data-autofocus
          label="Reason"
          description="Tells others why: a migration, a test."
          value={reason}
          onChange={(event) => setReason(event.currentTarget.value)}
        />
        <RestCall call={{ method: "POST", path: "/api/v1/alerts/silences", body }} />
        <FormButtons onCancel={onClose} loading={create.isPending}>
          Silence
        </FormButtons>
      </Stack>
    </form>
  );
}
