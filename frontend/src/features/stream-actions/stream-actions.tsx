import { Button, Group } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { IconPlayerPlay, IconPlayerStop, IconRefresh, IconTrash } from "@tabler/icons-react";
import { useState } from "react";
import { problemInWords } from "@/api/problem-in-words";
import { type StreamAction, useDeleteStream, useStreamAction } from "@/api/streams";
import type { Stream } from "@/api/types";
import type { RestCallSpec } from "@/lib/curl";
import { ConfirmByName } from "@/ui/confirm-by-name";
import { ConfirmStop } from "@/ui/confirm-stop";
import { ProblemAlert } from "@/ui/problem-alert";
import { RestCallButton } from "@/ui/rest-call";

const buttons = [
  { action: "start", label: "Start", icon: IconPlayerPlay },
  { action: "stop", label: "Stop", icon: IconPlayerStop },
  { action: "retry", label: "Retry", icon: IconRefresh },
] as const;

const asked: Record<StreamAction, string> = {
  start: "Its engine is asked to start it.",
  stop: "Its engine is asked to stop it, after it has applied what its queue holds.",
  retry: "Its engine is asked to clear the error and start again.",
};

function actionCall(stream: Stream, action: StreamAction): RestCallSpec {
  return { method: "POST", path: `/api/v1/streams/${stream.id}:${action}` };
}

function deleteCall(stream: Stream, force: boolean): RestCallSpec {
  return { method: "DELETE", path: `/api/v1/streams/${stream.id}${force ? "?force=true" : ""}` };
}

interface StreamActionsProps {
  stream: Stream;
  /** False: the user's role only reads. The calls are shown all the same. */
  mayAct: boolean;
  onDeleted: () => void;
}

export function StreamActions({ stream, mayAct, onDeleted }: StreamActionsProps) {
  const act = useStreamAction(stream.id);
  const remove = useDeleteStream(stream.id);
  const [confirming, setConfirming] = useState(false);
  const [stopping, setStopping] = useState(false);
  const names = stream.destinations.map(({ database }) => database.name).join(", ");
  const lost = [stream.capture_engine, ...stream.destinations.map(({ engine }) => engine)].find(
    ({ state }) => state === "UNREACHABLE" || state === "REFUSED",
  );
  const may = (action: string) => mayAct && stream.actions.includes(action);

  const run = (action: StreamAction) =>
    act.mutate(action, {
      onSuccess: () => notifications.show({ message: asked[action], title: stream.name }),
      onError: (error) => {
        const { title, message, cure } = problemInWords(error);
        notifications.show({
          title,
          message: [message, cure].filter(Boolean).join(" "),
          color: "red",
          autoClose: false,
        });
      },
    });

  return (
    <Group gap="xs" wrap="nowrap">
      <RestCallButton
        label="REST calls"
        calls={[
          { method: "GET", path: `/api/v1/streams/${stream.id}` },
          ...buttons.map(({ action }) => actionCall(stream, action)),
          deleteCall(stream, false),
        ]}
      />
      {buttons
        .filter(({ action }) => action !== "retry" || stream.actions.includes("retry"))
        .map(({ action, label, icon: Icon }) => (
          <Button
            key={action}
            variant={action === "retry" ? "filled" : "default"}
            leftSection={<Icon size={14} aria-hidden />}
            disabled={!may(action)}
            loading={act.isPending && act.variables === action}
            onClick={() => (action === "stop" ? setStopping(true) : run(action))}
          >
            {label}
          </Button>
        ))}
      <Button
        variant="default"
        leftSection={<IconTrash size={14} aria-hidden />}
        disabled={!may("delete")}
        onClick={() => setConfirming(true)}
        styles={{ root: may("delete") ? { color: "var(--tone-bad)" } : {} }}
      >
        Delete
      </Button>
      <ConfirmStop
        opened={stopping}
        onClose={() => setStopping(false)}
        name={stream.name}
        call={actionCall(stream, "stop")}
        onConfirm={() => {
          setStopping(false);
          run("stop");
        }}
      >
        The stream first applies what its queue holds. After that, nothing arrives at {names}, and{" "}
        {stream.source.name} keeps its WAL for the stream until it is started again or deleted.
      </ConfirmStop>
      <ConfirmByName
        opened={confirming}
        onClose={() => {
          remove.reset();
          setConfirming(false);
        }}
        title="Delete stream"
        note={
          lost &&
          `Engine ${lost.name} does not answer. Without Force, the stream is deleted once the engine is back. If the engine is lost for good, choose Force.`
        }
        name={stream.name}
        forceExplanation="Deletes the stream even if a database cannot be reached or the engine is lost for good. After 30 s without an answer from the engine, the control plane itself removes what the stream has made in its databases. The operation names what is left behind, such as a replication slot that holds WAL, with the SQL that removes it. If the engine comes back, it does not start the stream again."
        call={(force) => deleteCall(stream, force)}
        pending={remove.isPending}
        problem={remove.isError && <ProblemAlert problem={problemInWords(remove.error)} />}
        onConfirm={(force) => remove.mutate(force, { onSuccess: onDeleted })}
      >
        The stream stops; its slot and publication at {stream.source.name} and its progress at {names} are
        dropped. The tables and rows at {names} stay. This cannot be undone: to replicate again, a new stream
        must copy everything.
      </ConfirmByName>
    </Group>
  );
}
