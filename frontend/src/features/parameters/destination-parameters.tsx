import { Badge, Button, Group, Modal, Stack, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { problemInWords } from "@/api/problem-in-words";
import { parametersQuery, useUpdateDestination } from "@/api/streams";
import type { Stream, StreamDestination } from "@/api/types";
import { ProblemAlert } from "@/ui/problem-alert";
import { QueryFaces } from "@/ui/query-faces";
import { RestCallButton } from "@/ui/rest-call";
import { ParameterFields } from "./parameter-fields";
import { anyFault, defaults, sameValues, type Values, valueInWords } from "./parameter-values";

interface DestinationParametersProps {
  stream: Stream;
  destination: StreamDestination;
  mayAct: boolean;
  opened: boolean;
  onClose: () => void;
}

/** Parameters in which one of several destinations differs from the stream. */
export function DestinationParameters(props: DestinationParametersProps) {
  return (
    <Modal
      opened={props.opened}
      onClose={props.onClose}
      title={`Parameters of ${props.destination.database.name}`}
      size="xl"
      closeOnClickOutside={false}
    >
      <Form {...props} />
    </Modal>
  );
}

function Form({ stream, destination, mayAct, onClose }: DestinationParametersProps) {
  const query = useQuery(parametersQuery);
  const update = useUpdateDestination(stream.id, destination.id);
  const [own, setOwn] = useState<Values>(destination.parameters);
  const changed = !sameValues(own, destination.parameters);
  const form = useRef<HTMLDivElement>(null);
  // The dialog has looked for its field before the definitions came.
  useEffect(() => {
    if (query.isSuccess) form.current?.querySelector<HTMLElement>("[data-autofocus]")?.focus();
  }, [query.isSuccess]);
  return (
    <QueryFaces query={query} inWords={problemInWords} loadingLabel="Loading parameters">
      {(known) => {
        const definitions = known.filter((definition) => definition.per_destination);
        const ofStream = { ...defaults(known), ...stream.effective_parameters };
        const values = { ...ofStream, ...own };
        const save = () =>
          update.mutate(
            { body: { parameters: own }, etag: stream.etag },
            {
              onSuccess: () => {
                notifications.show({ title: destination.database.name, message: "Parameters saved." });
                onClose();
              },
            },
          );
        return (
          <Stack gap="md" ref={form}>
            <Text size="sm" c="dimmed">
              Parameters that are not set here follow the stream's, now and when the stream's change. The
              destinations share one capture and one queue, whose parameters are set on the stream.
            </Text>
            {update.isError && <ProblemAlert problem={problemInWords(update.error)} />}
            <ParameterFields
              definitions={definitions}
              values={values}
              base={{ ...ofStream, ...destination.effective_parameters }}
              onChange={(name, value) => setOwn((now) => ({ ...now, [name]: value }))}
              disabled={!mayAct}
              beside={(name) =>
                own[name] !== undefined && (
                  <>
                    <Badge size="sm">own</Badge>
                    <Button
                      size="compact-xs"
                      variant="subtle"
                      disabled={!mayAct}
                      aria-label={`Use the stream's value of ${name}`}
                      onClick={() => setOwn(({ [name]: _, ...others }) => others)}
                    >
                      Use the stream's: {valueInWords(ofStream[name] ?? "")}
                    </Button>
                  </>
                )
              }
            />
            <Group justify="flex-end">
              <RestCallButton
                calls={[
                  {
                    method: "PATCH",
                    path: `/api/v1/streams/${stream.id}/destinations/${destination.id}`,
                    headers: { "If-Match": stream.etag },
                    body: { parameters: own },
                  },
                ]}
              />
              <Button variant="default" onClick={onClose}>
                Cancel
              </Button>
              <Button
                disabled={!mayAct || !changed || anyFault(definitions, values)}
                loading={update.isPending}
                onClick={save}
              >
                Save parameters
              </Button>
            </Group>
          </Stack>
        );
      }}
    </QueryFaces>
  );
}
