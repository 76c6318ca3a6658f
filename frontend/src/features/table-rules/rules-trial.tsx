import { Button, Fieldset, Group, NumberInput, Stack, Text, Textarea } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { problemInWords } from "@/api/problem-in-words";
import type { useRulesTest } from "@/api/streams";
import type { RulesTest, RulesTestRequest } from "@/api/types";
import { ProblemAlert } from "@/ui/problem-alert";
import { RestCallButton } from "@/ui/rest-call";
import { JudgedChanges } from "./judged-changes";
import { triedChanges } from "./tried-changes";

const ROWS_MAX = 100;
const ROWS = 20;
const WAIT_SECONDS = 5;
const EXAMPLE = `[{"operation": "UPDATE", "old": {"id": 7}, "new": {"id": 7}}]`;

interface RulesTrialProps {
  /** The request but for rows and changes; null: the rules are not complete. */
  asked: Omit<RulesTestRequest, "sample" | "changes" | "recent"> | null;
  /** The stream whose next changes can be judged; null: it is not created yet. */
  stream: { id: string; name: string } | null;
  test: ReturnType<typeof useRulesTest>;
  onTry: (body: RulesTestRequest) => void;
  /** The table's columns, as far as they are known. */
  order: string[];
  /** Chooses the table, where the rules are for several. */
  choice?: ReactNode;
}

/** Tries the rules on rows of the table, and on changes that the user enters. */
export function RulesTrial({ asked, stream, test, onTry, order, choice }: RulesTrialProps) {
  const [rows, setRows] = useState<number | string>(ROWS);
  const [next, setNext] = useState<number | string>(0);
  const [text, setText] = useState("");
  const { changes, fault } = triedChanges(text);
  const recent =
    stream && Number(next) > 0
      ? { recent: { stream_id: stream.id, limit: Number(next), wait_ms: WAIT_SECONDS * 1000 } }
      : {};
  const body = asked && { ...asked, sample: Number(rows), changes, ...recent };
  const { data } = test;
  return (
    <Fieldset legend="Try the rules" p="xs">
      <Stack gap="xs">
        <Text size="xs" c="dimmed">
          The engine judges rows of the table, as the initial copy would take them,
          {stream
            ? " the changes that you enter, and the next ones of the stream"
            : " and the changes that you enter"}
          . Nothing is replicated.
        </Text>
        {choice}
        <NumberInput
          label="Rows of the table"
          min={0}
          max={ROWS_MAX}
          allowDecimal={false}
          clampBehavior="strict"
          value={rows}
          onChange={setRows}
          w={140}
        />
        {stream && (
          <NumberInput
            label="Next changes of the stream"
            description={`As ${stream.name} captures them, before its own rules. Waits for them for up to ${WAIT_SECONDS} seconds; columns that the stream masks or drops are not shown. 0: none.`}
            min={0}
            max={ROWS_MAX}
            allowDecimal={false}
            clampBehavior="strict"
            value={next}
            onChange={setNext}
            styles={{ wrapper: { width: 140 } }}
          />
        )}
        <Textarea
          label="Changes"
          description="A JSON list, like changes in the REST API. Columns that you leave out are NULL."
          placeholder={EXAMPLE}
          autosize
          maxRows={8}
          spellCheck={false}
          value={text}
          error={fault}
          onChange={(event) => setText(event.currentTarget.value)}
          styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
        />
        <Group gap="xs">
          <Button
            variant="default"
            loading={test.isPending}
            disabled={!body || fault !== undefined}
            onClick={() => body && onTry(body)}
          >
            Try
          </Button>
          {body && <RestCallButton calls={[{ method: "POST", path: "/api/v1/streams:test-rules", body }]} />}
        </Group>
        {test.isError && <ProblemAlert problem={problemInWords(test.error)} />}
        {data && data.problems.length > 0 && data.changes.length === 0 && (
          <Text size="sm" role="status">
            Nothing was judged: the rules do not fit the table. Correct what is marked above.
          </Text>
        )}
        {data && data.problems.length === 0 && data.changes.length === 0 && !data.recent_end && (
          <Text size="sm" role="status">
            There was nothing to judge: the table has no rows. Enter a change to try the rules on.
          </Text>
        )}
        {data && <WhyNoMore data={data} />}
        {data && data.changes.length > 0 && <JudgedChanges changes={data.changes} order={order} />}
      </Stack>
    </Fieldset>
  );
}

/** Why there are no changes of the stream, or fewer than asked for. */
function WhyNoMore({ data }: { data: RulesTest }) {
  const came = data.changes.filter(({ origin }) => origin === "STREAM").length;
  const text =
    data.recent_end === "SIZE"
      ? "The next change of the stream was too large to show."
      : data.recent_end === "TIME" && came === 0
        ? `No change of the table came within ${WAIT_SECONDS} seconds. Change a row at the source, or enter a change.`
        : data.recent_end === "TIME"
          ? `No more changes of the table came within ${WAIT_SECONDS} seconds.`
          : null;
  if (text === null) return null;
  return (
    <Text size="sm" role="status">
      {text}
    </Text>
  );
}
