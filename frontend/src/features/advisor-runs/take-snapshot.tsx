import { Button, Modal, NumberInput, Select, Stack, Text, TextInput } from "@mantine/core";
import { IconAdjustments, IconCamera } from "@tabler/icons-react";
import { useState } from "react";
import { useTakeRun } from "@/api/advisor";
import { problemInWords } from "@/api/problem-in-words";
import type { AdvisorRun, RunCreate } from "@/api/types";
import { FormButtons } from "@/ui/form-buttons";
import { ProblemAlert } from "@/ui/problem-alert";
import { RestCall } from "@/ui/rest-call";

const WINDOW_SECONDS = 30;

interface TakeSnapshotProps {
  mayAct: boolean;
  /** To choose from; when there is one only, it is the scope. */
  streams: { id: string; name: string }[];
  onTaken: (run: AdvisorRun) => void;
  /** Of one stream's page: that stream is the scope. */
  streamId?: string;
}

/** One button takes a snapshot of the last half minute; the one beside it asks what exactly. */
export function TakeSnapshot({ mayAct, streams, onTaken, streamId }: TakeSnapshotProps) {
  const take = useTakeRun();
  const [asking, setAsking] = useState(false);
  const usual: RunCreate = { window_seconds: WINDOW_SECONDS, facts: true, stream_id: streamId };
  const start = (body: RunCreate) =>
    take.mutate(body, {
      onSuccess: (run) => {
        setAsking(false);
        onTaken(run);
      },
    });
  return (
    <>
      <Button.Group>
        <Button
          leftSection={<IconCamera size={15} aria-hidden />}
          disabled={!mayAct}
          loading={take.isPending && !asking}
          onClick={() => start(usual)}
        >
          Take a snapshot
        </Button>
        <Button
          aria-label="Take a snapshot with options"
          px={8}
          disabled={!mayAct || take.isPending}
          onClick={() => setAsking(true)}
          style={{ borderLeft: "1px solid var(--surface-raised)" }}
        >
          <IconAdjustments size={15} aria-hidden />
        </Button>
      </Button.Group>
      <Modal
        opened={take.isError && !asking}
        onClose={() => take.reset()}
        title="The snapshot was not taken"
        size="lg"
      >
        {take.isError && <ProblemAlert problem={problemInWords(take.error)} onRetry={() => start(usual)} />}
      </Modal>
      <Modal opened={asking} onClose={() => setAsking(false)} title="Take a snapshot" size="lg">
        <Options
          streams={streams}
          streamId={streamId ?? null}
          pending={take.isPending}
          problem={take.isError && <ProblemAlert problem={problemInWords(take.error)} />}
          onStart={start}
          onCancel={() => setAsking(false)}
        />
      </Modal>
    </>
  );
}

interface OptionsProps {
  streams: { id: string; name: string }[];
  streamId: string | null;
  pending: boolean;
  problem: React.ReactNode;
  onStart: (body: RunCreate) => void;
  onCancel: () => void;
}

function Options({ streams, streamId, pending, problem, onStart, onCancel }: OptionsProps) {
  const [scope, setScope] = useState(streamId);
  const [seconds, setSeconds] = useState<number | string>(WINDOW_SECONDS);
  const [name, setName] = useState("");
  const [note, setNote] = useState("");
  const window = Number(seconds);
  const valid = Number.isInteger(window) && window >= 2 && window <= 3600;
  const body: RunCreate = {
    window_seconds: valid ? window : WINDOW_SECONDS,
    facts: true,
    stream_id: scope,
    name: name.trim() || null,
    note: note.trim() || null,
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (valid) onStart(body);
      }}
    >
      <Stack gap="sm">
        <Text size="sm">
          Thalweg analyses the last seconds of samples and reads the databases' catalogues for causes and
          cures.
        </Text>
        <Select
          label="Paths"
          data={[
            { value: "", label: "All paths" },
            ...streams.map(({ id, name: label }) => ({ value: id, label: `Paths of ${label}` })),
          ]}
          value={scope ?? ""}
          onChange={(value) => setScope(value || null)}
          allowDeselect={false}
          searchable
        />
        <NumberInput
          label="Seconds to analyse"
          description="2 to 3600. A short span shows this moment, a long one the average."
          min={2}
          max={3600}
          value={seconds}
          onChange={setSeconds}
          error={valid ? undefined : "A whole number from 2 to 3600"}
        />
        <TextInput
          data-autofocus
          label="Name"
          description="Optional. Helps you find the run again."
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <TextInput label="Note" value={note} onChange={(event) => setNote(event.currentTarget.value)} />
        {problem}
        <RestCall call={{ method: "POST", path: "/api/v1/advisor/runs", body }} maxHeight={180} />
        <FormButtons onCancel={onCancel} loading={pending} disabled={!valid}>
          Take the snapshot
        </FormButtons>
      </Stack>
    </form>
  );
}
