import { Modal, Stack, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { useUpdateEngine } from "@/api/operations";
import { problemInWords } from "@/api/problem-in-words";
import type { Engine } from "@/api/types";
import { FormButtons } from "@/ui/form-buttons";
import { ProblemAlert } from "@/ui/problem-alert";
import { RestCall } from "@/ui/rest-call";

/** Where other engines reach this one, when that is not where it listens: behind a load balancer or NAT. */
export function PropagationAddress({ engine, onClose }: { engine: Engine; onClose: () => void }) {
  const update = useUpdateEngine();
  const [text, setText] = useState(engine.propagation_address_set ? (engine.propagation_address ?? "") : "");
  const address = text.trim() || null;
  return (
    <Modal opened onClose={onClose} title={`Propagation address of ${engine.name}`} size="lg">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          update.mutate({ id: engine.id, etag: engine.etag, address }, { onSuccess: onClose });
        }}
      >
        <Stack gap="sm">
          <Text size="sm">
            Engines that send to {engine.name} connect to this address. It must lead to thalwegd's
            --propagation-listen.
          </Text>
          <TextInput
            label="Address"
            description={`HOST:PORT. Empty: the address that it listens on (${engine.identity?.listen ?? "none"}).`}
            placeholder={engine.identity?.listen ?? "HOST:8644"}
            value={text}
            onChange={(event) => setText(event.currentTarget.value)}
            data-autofocus
          />
          {update.isError && <ProblemAlert problem={problemInWords(update.error)} />}
          <RestCall
            call={{
              method: "PATCH",
              path: `/api/v1/engines/${engine.id}`,
              headers: { "If-Match": engine.etag },
              body: { propagation_address: address },
            }}
          />
          <FormButtons onCancel={onClose} loading={update.isPending}>
            Save
          </FormButtons>
        </Stack>
      </form>
    </Modal>
  );
}
