import { Button, Modal, Stack, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useState } from "react";
import { useUpdateStream } from "@/api/streams";
import type { Stream } from "@/api/types";
import { CheckedRequest } from "@/features/preflight/checked-request";
import { useConsents } from "@/features/preflight/use-consents";
import { captureInWords } from "@/lib/states";
import { FormButtons } from "@/ui/form-buttons";
import { InEffect } from "@/ui/in-effect";
import { Panel } from "@/ui/panel";

type Kind = Stream["capture_kind"];

const names: Record<Kind, string> = { logical: "logical decoding", wal: "log mining" };

/** How a stream's changes are captured, and the change to the other way. */
export function StreamCapture({ stream, mayAct }: { stream: Stream; mayAct: boolean }) {
  const [confirming, setConfirming] = useState(false);
  const other: Kind = stream.capture_kind === "wal" ? "logical" : "wal";
  const change = stream.kind_change;
  return (
    <Panel
      title="Capture"
      aside={
        <Button size="xs" variant="default" disabled={!mayAct} onClick={() => setConfirming(true)}>
          {change ? `Stay with ${names[other]}` : `Change to ${names[other]}`}
        </Button>
      }
    >
      <Text size="sm">Captured by {captureInWords(change ? other : stream.capture_kind)}.</Text>
      {change && (
        <Text size="sm" role="status">
          {changeInWords(stream, change)}
        </Text>
      )}
      <InEffect destinations={stream.destinations} />
      <Modal
        opened={confirming}
        onClose={() => setConfirming(false)}
        title={`Change to ${names[other]}`}
        size="lg"
      >
        <ChangeForm stream={stream} to={other} onClose={() => setConfirming(false)} />
      </Modal>
    </Panel>
  );
}

function changeInWords(
  stream: Stream,
  { to, position, waits_for }: NonNullable<Stream["kind_change"]>,
): string {
  if (position === null) {
    return `Changes to ${names[to]}: a slot for it is being made, which waits for transactions that run at the source.`;
  }
  const behind = stream.destinations
    .filter(({ id }) => waits_for.includes(id))
    .map(({ database }) => database.name);
  const waits = behind.length > 0 && ` It waits until ${behind.join(", ")} has everything from before that.`;
  return `Changes to ${names[to]} at ${position}.${waits || ""}`;
}

function ChangeForm({ stream, to, onClose }: { stream: Stream; to: Kind; onClose: () => void }) {
  const update = useUpdateStream(stream.id);
  const consents = useConsents();
  const body = { capture_kind: to, ...consents.member };
  const databases = Object.fromEntries(
    stream.destinations.map(({ database }) => [database.id, database.name]),
  );
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        update.mutate(
          { body, etag: stream.etag },
          {
            onError: consents.keep,
            onSuccess: () => {
              notifications.show({ title: stream.name, message: `It changes to ${names[to]}.` });
              onClose();
            },
          },
        );
      }}
    >
      <Stack gap="sm">
        <Text size="sm">
          Nothing is copied again, and changes go on arriving. The stream makes a second slot at{" "}
          {stream.source.name}, and changes at one position, once every destination has all changes from
          before it. Until then {stream.source.name} keeps its WAL for both slots.
        </Text>
        <Text size="sm">
          {to === "wal"
            ? `From then on the engine ${stream.capture_engine.name} receives all WAL of the server, stages it on its disk and mines it there. A failover of the source is not followed.`
            : `From then on the source's server decodes the WAL, which costs its processors, and keeps it while a destination is behind. The WAL staged at the engine ${stream.capture_engine.name} is deleted.`}
        </Text>
        <CheckedRequest
          error={update.error}
          consents={consents}
          databases={databases}
          call={{
            method: "PATCH",
            path: `/api/v1/streams/${stream.id}`,
            headers: { "If-Match": stream.etag },
            body,
          }}
        />
        <FormButtons onCancel={onClose} loading={update.isPending} disabled={!consents.cover(update.error)}>
          {`Change to ${names[to]}`}
        </FormButtons>
      </Stack>
    </form>
  );
}
