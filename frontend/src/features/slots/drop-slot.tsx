import { notifications } from "@mantine/notifications";
import { problemInWords } from "@/api/problem-in-words";
import { useDropSlot } from "@/api/slots";
import type { ServerSlot, SlotServer } from "@/api/types";
import { asText, bytes } from "@/lib/format";
import { ConfirmByName } from "@/ui/confirm-by-name";
import { ProblemAlert } from "@/ui/problem-alert";

interface DropSlotProps {
  server: SlotServer;
  slot: ServerSlot;
  onClose: () => void;
}

/** The server frees what it keeps for the slot; who reads from it cannot go on. */
export function DropSlot({ server, slot, onClose }: DropSlotProps) {
  const drop = useDropSlot();
  const databaseId = server.databases[0]?.id ?? "";
  return (
    <ConfirmByName
      opened
      onClose={onClose}
      title="Drop slot"
      verb="Drop"
      name={slot.name}
      call={() => ({ method: "DELETE", path: `/api/v1/databases/${databaseId}/slots/${slot.name}` })}
      pending={drop.isPending}
      problem={drop.isError && <ProblemAlert problem={problemInWords(drop.error)} />}
      note="Streams of another Thalweg have slots with such names, too. A stream whose slot is dropped must be copied again."
      onConfirm={() =>
        drop.mutate(
          { databaseId, slot: slot.name },
          {
            onSuccess: () => {
              notifications.show({ title: slot.name, message: `Dropped at ${server.address}.` });
              onClose();
            },
          },
        )
      }
    >
      No stream here owns this slot. {server.address} keeps {asText(bytes(slot.retained_bytes))} of WAL for it
      and frees that WAL at its next checkpoint. The audit log records what the slot was.
    </ConfirmByName>
  );
}
