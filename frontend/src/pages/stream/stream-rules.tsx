import { Button, Code, Group, Modal, Stack, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { IconPencil } from "@tabler/icons-react";
import { useState } from "react";
import { problemInWords } from "@/api/problem-in-words";
import { useUpdateStream } from "@/api/streams";
import type { Stream, TablePattern, TableRules } from "@/api/types";
import { CheckedRequest } from "@/features/preflight/checked-request";
import { useConsents } from "@/features/preflight/use-consents";
import { InsertsOnly } from "@/features/table-rules/inserts-only";
import { faultOfMaskKey, hidingMaskKey, maskKeyOf } from "@/features/table-rules/mask-key";
import { completeRules } from "@/features/table-rules/matching";
import { NamesThere } from "@/features/table-rules/names-there";
import { renameInWords } from "@/features/table-rules/renames";
import { RowRules } from "@/features/table-rules/row-rules";
import { RuleCountsTable } from "@/features/table-rules/rule-counts";
import { RuleEditor } from "@/features/table-rules/rule-editor";
import { RulePreview } from "@/features/table-rules/rule-preview";
import { placeInWords } from "@/features/table-rules/rule-scopes";
import { RulesInForce } from "@/features/table-rules/rules-in-force";
import { stepInWords } from "@/features/table-rules/transformation-drafts";
import { Transformations } from "@/features/table-rules/transformations";
import { usePreview } from "@/features/table-rules/use-preview";
import { InEffect } from "@/ui/in-effect";
import { Panel } from "@/ui/panel";
import { ProblemAlert } from "@/ui/problem-alert";

/** The rules of a stream that exists, and the way to change them. */
export function StreamRules({ stream, mayAct }: { stream: Stream; mayAct: boolean }) {
  const [editing, setEditing] = useState(false);
  const { rules } = stream;
  const pattern = ({ schema, table }: TablePattern) => `${schema}.${table ?? "*"}`;
  const lines = [
    ["Include", rules.include.map(pattern)],
    ["Exclude", (rules.exclude ?? []).map(pattern)],
    ...(rules.inserts_only?.length ? [["Inserts only", rules.inserts_only.map(pattern)] as const] : []),
    ...(rules.row_rules?.length ? [["Rows by rules", rules.row_rules.map(placeInWords)] as const] : []),
    ...(rules.transformations ?? []).map(
      (own) => [`Columns of ${pattern(own)}`, own.steps.map(stepInWords)] as const,
    ),
    ...(rules.renames?.length ? [["Other names", rules.renames.map(renameInWords)] as const] : []),
  ] as const;
  const owned = [
    { owner: "the stream", rules: rules.row_rules ?? [] },
    ...stream.destinations.map(({ database, row_rules }) => ({ owner: database.name, rules: row_rules })),
  ].filter((own) => own.rules.length > 0);
  return (
    <Panel
      title="Table rules"
      aside={
        <Button
          variant="default"
          leftSection={<IconPencil size={14} aria-hidden />}
          disabled={!mayAct || stream.desired_status === "DROPPED"}
          onClick={() => setEditing(true)}
        >
          Edit rules
        </Button>
      }
    >
      {lines.map(([label, list]) => (
        <Group key={label} gap={8} mb={4}>
          <Text size="sm" c="dimmed" w={80}>
            {label}
          </Text>
          {list.length === 0 && <Text size="sm">none</Text>}
          {list.map((place) => (
            <Code key={place}>{place}</Code>
          ))}
        </Group>
      ))}
      <InEffect destinations={stream.destinations} />
      {rules.row_rules && rules.row_rules.length > 0 && <RuleCountsTable counts={stream.rule_counts} />}
      {owned.length > 0 && <RulesInForce tables={stream.tables} owned={owned} />}
      <Modal opened={editing} onClose={() => setEditing(false)} title="Edit table rules" size="xl">
        <RulesForm stream={stream} onClose={() => setEditing(false)} />
      </Modal>
    </Panel>
  );
}

function RulesForm({ stream, onClose }: { stream: Stream; onClose: () => void }) {
  const [rules, setRules] = useState<TableRules>(stream.rules);
  const preview = usePreview(stream.source.id, rules);
  const update = useUpdateStream(stream.id);
  const consents = useConsents();
  const [maskKey, setMaskKey] = useState("");
  const body = {
    rules: completeRules(rules),
    ...maskKeyOf(rules, maskKey),
    ...consents.member,
  };
  const names = Object.fromEntries(stream.destinations.map(({ database }) => [database.id, database.name]));
  const matched = new Set(preview.data?.tables.map((table) => `${table.schema}.${table.table}`));
  const present = new Set(stream.tables.map((table) => `${table.schema}.${table.table}`));
  const added = [...matched].filter((table) => !present.has(table));
  const removed = [...present].filter((table) => !matched.has(table));

  // A consent is to what a check says: it stays while other rules are tried, and goes only with the check's words.
  const change = (next: TableRules) => {
    update.reset();
    setRules(next);
  };
  const changeKey = (key: string) => {
    update.reset();
    setMaskKey(key);
  };

  return (
    <Stack gap="sm">
      <RuleEditor rules={rules} onChange={change} />
      {preview.error ? (
        <ProblemAlert problem={problemInWords(preview.error)} onRetry={() => preview.refetch()} />
      ) : (
        preview.data && (
          <>
            <RulePreview preview={preview.data} updating={preview.isFetching} />
            <InsertsOnly tables={preview.data.tables} rules={rules} onChange={change} />
            <RowRules
              sourceId={stream.source.id}
              captureEngineId={stream.capture_engine.id}
              stream={stream}
              tables={preview.data.tables}
              rules={rules}
              onChange={change}
            />
            <Transformations
              sourceId={stream.source.id}
              tables={preview.data.tables}
              rules={rules}
              onChange={change}
              maskKey={{ value: maskKey, onChange: changeKey, isSet: stream.mask_key_set }}
            />
            <NamesThere tables={preview.data.tables} rules={rules} onChange={change} />
            <Change label="Added, and copied" tables={added} />
            <Change label="Removed; their rows at the destination stay as they are" tables={removed} />
          </>
        )
      )}
      <CheckedRequest
        error={update.error}
        consents={consents}
        databases={names}
        call={{
          method: "PATCH",
          path: `/api/v1/streams/${stream.id}`,
          headers: { "If-Match": stream.etag },
          body: hidingMaskKey(body),
        }}
      />
      <Group justify="flex-end">
        <Button variant="default" onClick={onClose}>
          Cancel
        </Button>
        <Button
          loading={update.isPending}
          disabled={
            !preview.isSettled ||
            !preview.data ||
            preview.data.tables.length === 0 ||
            faultOfMaskKey(rules, maskKey) !== null ||
            !consents.cover(update.error)
          }
          onClick={() =>
            update.mutate(
              { body, etag: stream.etag },
              {
                onError: consents.keep,
                onSuccess: () => {
                  notifications.show({ title: stream.name, message: "Table rules saved." });
                  onClose();
                },
              },
            )
          }
        >
          Save rules
        </Button>
      </Group>
    </Stack>
  );
}

const SHOWN = 20;

function Change({ label, tables }: { label: string; tables: string[] }) {
  const more = tables.length - SHOWN;
  return (
    <Text size="sm">
      {label}: {tables.length === 0 ? "none" : tables.slice(0, SHOWN).join(", ")}
      {more > 0 && ` and ${more} more`}
    </Text>
  );
}
