import { Modal, NumberInput, Select, Stack, TextInput } from "@mantine/core";
import { useState } from "react";
import { useCreateSchedule, useUpdateSchedule } from "@/api/advisor-schedules";
import { problemInWords } from "@/api/problem-in-words";
import type { Schedule } from "@/api/types";
import { FormButtons } from "@/ui/form-buttons";
import { ProblemAlert } from "@/ui/problem-alert";
import { RestCall } from "@/ui/rest-call";
import { faultsOf, type ScheduleValues, suggested } from "./schedule-values";

interface ScheduleFormProps {
  /** Null: a new one. */
  schedule: Schedule | null;
  streams: { id: string; name: string }[];
  onClose: () => void;
}

export function ScheduleForm({ schedule, streams, onClose }: ScheduleFormProps) {
  const [values, setValues] = useState<ScheduleValues>(schedule ?? suggested);
  const create = useCreateSchedule();
  const update = useUpdateSchedule();
  const faults = faultsOf(values);
  const valid = Object.keys(faults).length === 0;
  const change = (part: Partial<ScheduleValues>) => setValues((now) => ({ ...now, ...part }));
  const common = {
    name: values.name.trim(),
    interval_seconds: Number(values.interval_seconds),
    window_seconds: Number(values.window_seconds),
  };
  const body = schedule ? common : { ...common, stream_id: values.stream_id, enabled: true };
  const save = () =>
    schedule
      ? update.mutate({ id: schedule.id, etag: schedule.etag, body: common }, { onSuccess: onClose })
      : create.mutate({ ...common, stream_id: values.stream_id, enabled: true }, { onSuccess: onClose });
  const failed = create.error ?? update.error;
  return (
    <Modal opened onClose={onClose} title={schedule ? `Change ${schedule.name}` : "Add schedule"} size="lg">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (valid) save();
        }}
      >
        <Stack gap="sm">
          <TextInput
            label="Name"
            value={values.name}
            error={faults.name}
            onChange={(event) => change({ name: event.currentTarget.value })}
            data-autofocus
          />
          {!schedule && (
            <Select
              label="Paths"
              data={[
                { value: "", label: "All paths" },
                ...streams.map(({ id, name }) => ({ value: id, label: `Paths of ${name}` })),
              ]}
              value={values.stream_id ?? ""}
              onChange={(value) => change({ stream_id: value || null })}
              allowDeselect={false}
              searchable
            />
          )}
          <NumberInput
            label="Every"
            description="Seconds between two runs, 10 to 86 400."
            suffix=" s"
            value={values.interval_seconds}
            error={faults.interval_seconds}
            onChange={(value) => change({ interval_seconds: value })}
          />
          <NumberInput
            label="Analyse the last"
            description="Seconds of samples, 2 to 3600."
            suffix=" s"
            value={values.window_seconds}
            error={faults.window_seconds}
            onChange={(value) => change({ window_seconds: value })}
          />
          {failed && <ProblemAlert problem={problemInWords(failed)} />}
          <RestCall
            call={{
              method: schedule ? "PATCH" : "POST",
              path: `/api/v1/advisor/schedules${schedule ? `/${schedule.id}` : ""}`,
              ...(schedule ? { headers: { "If-Match": schedule.etag } } : {}),
              body,
            }}
            maxHeight={160}
          />
          <FormButtons onCancel={onClose} loading={create.isPending || update.isPending} disabled={!valid}>
            {schedule ? "Save" : "Add"}
          </FormButtons>
        </Stack>
      </form>
    </Modal>
  );
}
