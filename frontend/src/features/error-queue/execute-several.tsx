import { Button, Modal, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { problemInWords } from "@/api/problem-in-words";
import { useExecuteSeveral } from "@/api/streams";
import type { ErrorCause } from "@/api/types";
import { formatCount } from "@/lib/format";
import { withFullStop } from "@/lib/sentences";
import { FormButtons } from "@/ui/form-buttons";
import { ProblemAlert } from "@/ui/problem-alert";
import { RestCall } from "@/ui/rest-call";
import { asRole, RoleInput } from "./role-input";

interface ExecuteSeveralProps {
  streamId: string;
  destinationId: string;
  total: number;
  /** Those with this cause; without one, the whole queue. */
  cause?: ErrorCause;
  path: string;
  disabled: boolean;
}

/** Asks, and has the whole queue executed, or the transactions with one cause. */
export function ExecuteSeveral({
  streamId,
  destinationId,
  total,
  cause,
  path,
  disabled,
}: ExecuteSeveralProps) {
  const [asks, setAsks] = useState(false);
  const [role, setRole] = useState("");
  const execute = useExecuteSeveral(streamId, destinationId);
  const close = () => {
    execute.reset();
    setAsks(false);
  };
  const verb = cause ? "Execute these" : "Execute all";
  const all = cause ? "The" : "All";
  return (
    <>
      <Button
        variant="default"
        disabled={disabled}
        aria-label={cause && `Execute: ${cause.title}`}
        onClick={() => setAsks(true)}
      >
        {verb}
      </Button>
      <Modal opened={asks} onClose={close} title={verb} size="lg">
        <form
          onSubmit={(event) => {
            event.preventDefault();
            execute.mutate({ cause: cause?.cause, body: asRole(role) }, { onSuccess: close });
          }}
        >
          <Stack gap="sm">
            {cause && <Text size="sm">{withFullStop(cause.title)}</Text>}
            <Text size="sm">
              {total === 1 ? "The transaction is" : `${all} ${formatCount(total)} transactions are`} applied
              now, {cause && "with those waiting behind, "}in the source's order, each with its own commit.
              Transactions that fail again stay parked, with those waiting behind them, and hold back nothing
              else.
            </Text>
            <RoleInput role={role} onChange={setRole} />
            {execute.isError && <ProblemAlert problem={problemInWords(execute.error)} />}
            <RestCall
              call={{
                method: "POST",
                path: `${path}:execute${cause ? `?cause=${cause.cause}` : ""}`,
                body: asRole(role),
              }}
            />
            <FormButtons onCancel={close} loading={execute.isPending}>
              {verb}
            </FormButtons>
          </Stack>
        </form>
      </Modal>
    </>
  );
}
