import { Button, Group, Stack, Text } from "@mantine/core";
import { IconArrowBackUp } from "@tabler/icons-react";
import { useEffect, useState } from "react";
import type { AppliedCure } from "@/api/types";
import { cureStateInWords } from "@/lib/advisor";
import { parseTime } from "@/lib/format";
import { AnchorLink } from "@/ui/anchor-link";
import { ToneBadge } from "@/ui/tone";
import { UndoCure } from "./undo-cure";

/** Outcome of an applied cure, with the way back. */
export function CureOutcome({ cure, mayAct }: { cure: AppliedCure; mayAct: boolean }) {
  const [undoing, setUndoing] = useState(false);
  return (
    <Stack gap={6} align="flex-end" style={{ flex: "none", maxWidth: "min(380px, 100%)" }}>
      <Group gap={8} justify="flex-end">
        <span role="status" aria-label="Outcome of the cure">
          <ToneBadge state={cureStateInWords(cure.state)} />
        </span>
        {undoable(cure) && (
          <Button
            variant="default"
            disabled={!mayAct}
            leftSection={<IconArrowBackUp size={14} aria-hidden />}
            onClick={() => setUndoing(true)}
          >
            Undo
          </Button>
        )}
      </Group>
      {cure.state === "measuring" && <Countdown until={parseTime(cure.measure_at)} />}
      {cure.outcome && (
        <Text size="xs" ta="right">
          {cure.outcome}
        </Text>
      )}
      {cure.before_run_id !== null && cure.after_run_id !== null && (
        <AnchorLink
          to="/advisor/compare"
          search={{ before: cure.before_run_id, after: cure.after_run_id }}
          size="xs"
        >
          Compare before and after
        </AnchorLink>
      )}
      {undoing && <UndoCure cure={cure} onClose={() => setUndoing(false)} />}
    </Stack>
  );
}

/** An index that is being created or dropped has to end first. */
function undoable({ state, sql, by_hand }: AppliedCure): boolean {
  return (
    !by_hand &&
    state !== "undone" &&
    state !== "failed" &&
    (sql === null || (state !== "applying" && state !== "undoing"))
  );
}

function Countdown({ until }: { until: number | null }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  if (until === null) return null;
  const seconds = Math.ceil((until - now) / 1000);
  return (
    <Text size="xs" c="dimmed">
      {seconds > 0 ? `The second snapshot is taken in ${seconds} s.` : "The second snapshot is being taken."}
    </Text>
  );
}
