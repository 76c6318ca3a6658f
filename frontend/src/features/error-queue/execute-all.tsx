import { Button, Modal, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { problemInWords } from "@/api/problem-in-words";
import { useExecuteAll } from "@/api/streams";
import { formatCount } from "@/lib/format";
import { FormButtons } from "@/ui/form-buttons";
import { ProblemAlert } from "@/ui/problem-alert";
import { RestCall } from "@/ui/rest-call";

interface ExecuteAllProps {
  streamId: string;
  destinationId: string;
  total: number;
  path: string;
  disabled: boolean;
}

/** Asks, and has the whole queue executed. */
export function ExecuteAll({ streamId, destinationId, total, path, disabled }: ExecuteAllProps) {
  const [asks, setAsks] = useState(false);
  const execute = useExecuteAll(streamId, destinationId);
  const close = () => {
    execute.reset();
    setAsks(false);
  };
  return (
    <>
      <Button variant="default" disabled={disabled} onClick={() => setAsks(true)}>
        Execute all
      </Button>
      <Modal opened={asks} onClose={close} title="Execute all" size="lg">
        <form
          onSubmit={(event) => {
            event.preventDefault();
            execute.mutate(undefined, { onSuccess: close });
          }}
        >
          <Stack gap="sm">
            <Text size="sm">
              {total === 1 ? "The transaction is" : `All ${formatCount(total)} transactions are`} applied now,
              in the source's order, each with its own commit. Transactions that fail again stay parked, with
              those waiting behind them, and hold back nothing else.
            </Text>
            {execute.isError && <ProblemAlert problem={problemInWords(execute.error)} />}
            <RestCall call={{ method: "POST", path: `${path}:execute` }} />
            <FormButtons onCancel={close} loading={execute.isPending}>
              Execute all
            </FormButtons>
          </Stack>
        </form>
      </Modal>
    </>
  );
}
