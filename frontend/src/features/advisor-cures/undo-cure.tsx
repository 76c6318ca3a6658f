import { Modal, Stack, Text } from "@mantine/core";
import { useUndoCure } from "@/api/advisor-cures";
import { problemInWords } from "@/api/problem-in-words";
import type { AppliedCure } from "@/api/types";
import { exact } from "@/lib/format";
import { CopyBlock } from "@/ui/copy-block";
import { FormButtons } from "@/ui/form-buttons";
import { ProblemAlert } from "@/ui/problem-alert";
import { RestCall } from "@/ui/rest-call";

/** Says what undoing a cure executes, and where, before it does. */
export function UndoCure({ cure, onClose }: { cure: AppliedCure; onClose: () => void }) {
  const undo = useUndoCure();
  return (
    <Modal opened onClose={onClose} title="Undo the cure" size="lg">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          undo.mutate(cure.id, { onSuccess: onClose });
        }}
      >
        <Stack gap="sm">
          <Text size="sm" style={{ overflowWrap: "anywhere" }}>
            It was applied against: {cure.finding.title}.
          </Text>
          {cure.sql === null ? <Parameters cure={cure} /> : <Index cure={cure} />}
          {undo.isError && <ProblemAlert problem={problemInWords(undo.error)} />}
          <RestCall call={{ method: "POST", path: `/api/v1/advisor/cures/${cure.id}:undo` }} />
          <FormButtons onCancel={onClose} loading={undo.isPending}>
            Undo
          </FormButtons>
        </Stack>
      </form>
    </Modal>
  );
}

function Index({ cure: { finding, sql, undo_sql, destination_id } }: { cure: AppliedCure }) {
  const made = finding.cures.find((chosen) => chosen.sql === sql);
  const where = made?.database ?? destination_id ?? "the destination";
  return (
    <>
      {undo_sql && (
        <CopyBlock
          text={undo_sql}
          label={`SQL that runs at ${where}, as its registered user`}
          copyLabel="Copy SQL"
        />
      )}
      <Text size="sm">
        The index at {where} is dropped, and work that it sped up is slow again. Dropping it waits for
        transactions that are open there.
      </Text>
    </>
  );
}

function Parameters({ cure }: { cure: AppliedCure }) {
  const { parameters_before: before, parameters_after: after, destination_id } = cure;
  return (
    <>
      {Object.entries(after).map(([name, value]) => (
        <Text key={name} size="sm">
          <Text span ff="monospace" size="xs">
            {name}
          </Text>{" "}
          {exact(value)} → <strong>{exact(before[name] ?? "default")}</strong>{" "}
          {destination_id ? `for the destination ${destination_id} only` : "for the whole stream"}
        </Text>
      ))}
    </>
  );
}
