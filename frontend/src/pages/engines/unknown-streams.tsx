import { Button, Group, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { useDropUnknownStream } from "@/api/operations";
import { problemInWords } from "@/api/problem-in-words";
import type { Engine } from "@/api/types";
import { stateInWords } from "@/lib/states";
import { ConfirmByName } from "@/ui/confirm-by-name";
import { ProblemAlert } from "@/ui/problem-alert";

interface Unknown {
  engine: Engine;
  streamId: string;
}

/** Streams that engines run and the store does not know: it came back from a backup that is older than they. */
export function UnknownStreams({ engines, mayAct }: { engines: Engine[]; mayAct: boolean }) {
  const [dropping, setDropping] = useState<Unknown | null>(null);
  return (
    <>
      {engines.flatMap((engine) =>
        engine.unknown_streams.map(({ id, status, phase, being_dropped }) => (
          <Stack key={`${engine.id} ${id}`} gap={6} mb="sm">
            <ProblemAlert
              tone="warning"
              problem={{
                title: `${engine.name} has the stream ${id}, which the store does not know`,
                message: `The engine keeps it as it was, at last ${stateInWords(status === "ENABLED" ? phase : status).label}. A store restored from an older backup does not know the streams created since.`,
                cure: "Drop it, and create the stream again; or restore a newer backup.",
              }}
            />
            <Group>
              <Button
                variant="default"
                disabled={!mayAct || being_dropped}
                onClick={() => setDropping({ engine, streamId: id })}
              >
                {being_dropped ? "Being dropped" : `Drop ${id}`}
              </Button>
            </Group>
          </Stack>
        )),
      )}
      {dropping && <DropUnknown {...dropping} onClose={() => setDropping(null)} />}
    </>
  );
}

function DropUnknown({ engine, streamId, onClose }: Unknown & { onClose: () => void }) {
  const drop = useDropUnknownStream();
  return (
    <ConfirmByName
      opened
      onClose={onClose}
      title="Drop an unknown stream"
      verb="Drop"
      name={streamId}
      call={() => ({
        method: "POST",
        path: `/api/v1/engines/${engine.id}:drop-stream`,
        body: { stream_id: streamId },
      })}
      pending={drop.isPending}
      problem={drop.isError && <ProblemAlert problem={problemInWords(drop.error)} />}
      onConfirm={() => drop.mutate({ id: engine.id, streamId }, { onSuccess: onClose })}
    >
      <Text size="sm">
        {engine.name} removes the stream's slot and publication at the source and its progress at the
        destination. The tables stay as they are.
      </Text>
    </ConfirmByName>
  );
}
