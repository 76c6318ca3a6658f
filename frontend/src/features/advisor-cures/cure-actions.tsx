import { Button, Modal, NumberInput, Stack, Text } from "@mantine/core";
import { IconCircleCheck, IconWand } from "@tabler/icons-react";
import { useState } from "react";
import { useApplyCure } from "@/api/advisor-cures";
import { ProblemError } from "@/api/problem";
import { problemInWords } from "@/api/problem-in-words";
import type { AppliedCure, Cure, Finding } from "@/api/types";
import { exact } from "@/lib/format";
import { CopyBlock } from "@/ui/copy-block";
import { FormButtons } from "@/ui/form-buttons";
import { ProblemAlert } from "@/ui/problem-alert";
import { RestCall } from "@/ui/rest-call";
import { CureOutcome } from "./cure-outcome";

const MEASURE_AFTER_SECONDS = 30;
const CHECK_AFTER_SECONDS = 10;

interface CureActionsProps {
  runId: number;
  finding: Finding;
  cure: Cure;
  index: number;
  /** Cures of this finding that were applied, newest first. */
  applied: AppliedCure[];
  mayAct: boolean;
}

/** Apply a change of parameters or create an index; for what a person does at a database, check afterwards whether it helped. */
export function CureActions({ runId, finding, cure, index, applied, mayAct }: CureActionsProps) {
  const [open, setOpen] = useState(false);
  const latest = applied.find((appliedCure) => sameChange(appliedCure, cure));
  if (latest?.by_hand || (cure.kind !== "parameter" && !cure.index)) {
    return <ByHand runId={runId} finding={finding} index={index} latest={latest} mayAct={mayAct} />;
  }
  if (latest && latest.state !== "undone" && latest.state !== "failed") {
    return <CureOutcome cure={latest} mayAct={mayAct} />;
  }
  return (
    <Stack gap={6} align="flex-end" style={{ flex: "none", maxWidth: "100%" }}>
      {latest?.state === "failed" && <CureOutcome cure={latest} mayAct={mayAct} />}
      <Button
        disabled={!mayAct}
        leftSection={<IconWand size={14} aria-hidden />}
        style={{ flex: "none" }}
        onClick={() => setOpen(true)}
      >
        Apply
      </Button>
      {open && (
        <ApplyCure runId={runId} finding={finding} cure={cure} index={index} onClose={() => setOpen(false)} />
      )}
    </Stack>
  );
}

function sameChange(applied: AppliedCure, cure: Cure): boolean {
  if (applied.by_hand) return applied.finding.cures[0]?.text === cure.text;
  if (cure.kind === "sql") return applied.sql === cure.sql;
  return (
    applied.destination_id === cure.destination_id &&
    cure.parameters.every(({ name, proposed }) => applied.parameters_after[name] === proposed)
  );
}

interface ApplyCureProps {
  runId: number;
  finding: Finding;
  cure: Cure;
  index: number;
  onClose: () => void;
}

function ApplyCure({ runId, finding, cure, index, onClose }: ApplyCureProps) {
  const apply = useApplyCure();
  const check = useApplyCure();
  const [seconds, setSeconds] = useState<number | string>(MEASURE_AFTER_SECONDS);
  const after = Number(seconds);
  const valid = Number.isInteger(after) && after >= 5 && after <= 3600;
  const body = {
    run_id: runId,
    finding_id: finding.id,
    cure_index: index,
    measure_after_seconds: valid ? after : MEASURE_AFTER_SECONDS,
    by_hand: false,
  };
  return (
    <Modal opened onClose={onClose} title="Apply the cure" size="lg">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (valid) apply.mutate(body, { onSuccess: onClose });
        }}
      >
        <Stack gap="sm">
          <Text size="sm">{cure.text}</Text>
          {cure.parameters.map(({ name, current, proposed }) => (
            <Text key={name} size="sm">
              <Text span ff="monospace" size="xs">
                {name}
              </Text>{" "}
              {exact(current)} → <strong>{exact(proposed)}</strong>
              {cure.destination_id && <> for the destination {cure.destination_id} only</>}
            </Text>
          ))}
          {cure.sql && (
            <>
              <CopyBlock
                text={cure.sql}
                label={`SQL that runs at ${cure.database}, as its registered user`}
                copyLabel="Copy SQL"
              />
              <Text size="sm">
                On a large table this may take minutes, and it waits for transactions that are open there.
                Writers are not blocked. Undo drops the index again.
              </Text>
            </>
          )}
          <NumberInput
            data-autofocus
            label="Measure again after"
            description={`Seconds, 5 to 3600. Thalweg takes one snapshot now and another one this long after ${cure.sql ? "the index is built" : "the change"}; comparing them shows whether it helped.`}
            suffix=" s"
            min={5}
            max={3600}
            value={seconds}
            onChange={setSeconds}
            error={valid ? undefined : "A whole number from 5 to 3600"}
          />
          {apply.isError && <ProblemAlert problem={problemInWords(apply.error)} />}
          {forbidden(apply.error) && (
            <Button
              variant="default"
              loading={check.isPending}
              leftSection={<IconCircleCheck size={14} aria-hidden />}
              style={{ alignSelf: "flex-start" }}
              onClick={() => check.mutate({ ...body, by_hand: true }, { onSuccess: onClose })}
            >
              Check whether it helped
            </Button>
          )}
          {check.isError && <ProblemAlert problem={problemInWords(check.error)} />}
          <RestCall call={{ method: "POST", path: "/api/v1/advisor/cures", body }} maxHeight={160} />
          <FormButtons onCancel={onClose} loading={apply.isPending} disabled={!valid}>
            Apply
          </FormButtons>
        </Stack>
      </form>
    </Modal>
  );
}

/** The database's user may not: somebody else has to. */
function forbidden(error: unknown): boolean {
  return error instanceof ProblemError && error.problem.code === "insufficient_privilege";
}

interface ByHandProps {
  runId: number;
  finding: Finding;
  index: number;
  latest: AppliedCure | undefined;
  mayAct: boolean;
}

/** A person has carried it out: a snapshot says whether it helped, as often as one wants to know. */
function ByHand({ runId, finding, index, latest, mayAct }: ByHandProps) {
  const apply = useApplyCure();
  const body = {
    run_id: runId,
    finding_id: finding.id,
    cure_index: index,
    measure_after_seconds: CHECK_AFTER_SECONDS,
    by_hand: true,
  };
  return (
    <Stack gap={6} align="flex-end" style={{ flex: "none", maxWidth: "min(380px, 100%)" }}>
      {latest && <CureOutcome cure={latest} mayAct={mayAct} />}
      {latest?.state !== "measuring" && (
        <Button
          variant="default"
          disabled={!mayAct}
          loading={apply.isPending}
          leftSection={<IconCircleCheck size={14} aria-hidden />}
          onClick={() => apply.mutate(body)}
        >
          {latest ? "Check again" : "Check whether it helped"}
        </Button>
      )}
      {apply.isError && <ProblemAlert problem={problemInWords(apply.error)} />}
    </Stack>
  );
}
