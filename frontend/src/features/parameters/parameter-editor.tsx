import { Button, Group, Stack, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { problemInWords } from "@/api/problem-in-words";
import { parametersQuery, useUpdateStream } from "@/api/streams";
import type { Stream } from "@/api/types";
import { InEffect } from "@/ui/in-effect";
import { ProblemAlert } from "@/ui/problem-alert";
import { QueryFaces } from "@/ui/query-faces";
import { RestCallButton } from "@/ui/rest-call";
import { ParameterFields } from "./parameter-fields";
import { anyFault, changedValues, defaults, type Values } from "./parameter-values";

/** The parameters of a stream that exists; what is marked live takes effect at once. */
export function ParameterEditor({ stream, mayAct }: { stream: Stream; mayAct: boolean }) {
  const definitions = useQuery(parametersQuery);
  const update = useUpdateStream(stream.id);
  const [edited, setEdited] = useState<Values>({});

  return (
    <QueryFaces query={definitions} inWords={problemInWords} loadingLabel="Loading parameters">
      {(known) => {
        const base = { ...defaults(known), ...stream.effective_parameters };
        const changed = changedValues(base, edited);
        const count = Object.keys(changed).length;
        const invalid = anyFault(known, { ...base, ...edited });
        const save = () =>
          update.mutate(
            { body: { parameters: changed }, etag: stream.etag },
            {
              onSuccess: () => {
                setEdited({});
                notifications.show({ title: stream.name, message: "Parameters saved." });
              },
            },
          );
        return (
          <Stack gap="md">
            <InEffect destinations={stream.destinations} />
            {update.isError && <ProblemAlert problem={problemInWords(update.error)} />}
            <ParameterFields
              definitions={known}
              values={{ ...base, ...edited }}
              base={base}
              onChange={(name, value) => setEdited((now) => ({ ...now, [name]: value }))}
              disabled={!mayAct}
            />
            <Group justify="flex-end">
              <Text size="sm" c="dimmed">
                {count === 0 ? "Nothing changed" : `${count} changed`}
              </Text>
              <RestCallButton
                calls={[
                  {
                    method: "PATCH",
                    path: `/api/v1/streams/${stream.id}`,
                    headers: { "If-Match": stream.etag },
                    body: { parameters: changed },
                  },
                ]}
              />
              <Button variant="default" disabled={count === 0} onClick={() => setEdited({})}>
                Undo changes
              </Button>
              <Button disabled={!mayAct || count === 0 || invalid} loading={update.isPending} onClick={save}>
                Save parameters
              </Button>
            </Group>
          </Stack>
        );
      }}
    </QueryFaces>
  );
}
