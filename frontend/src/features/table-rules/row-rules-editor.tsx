import { Button, Checkbox, Group, Select, Stack, Text } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { columnsQuery } from "@/api/databases";
import { problemInWords } from "@/api/problem-in-words";
import { useRulesCheck, useRulesTest } from "@/api/streams";
import type { RuleProblem, ScopedRules, TableRules } from "@/api/types";
import { HelpLink } from "@/ui/help-link";
import { ProblemAlert } from "@/ui/problem-alert";
import { ToneIcon } from "@/ui/tone";
import { completeRules, rowRulesOf } from "./matching";
import { RowRuleFields } from "./row-rule-fields";
import { draftOf, faultOfName, mayBeSubset, type RuleDraft, type RulesDraft, rulesOf } from "./rule-drafts";
import { concerns, isSamePlace, overlap, placeInWords, type RulePlace, type TableName } from "./rule-scopes";
import { RulesTrial } from "./rules-trial";

const NO_TABLE: TableName = { schema: "", table: "" };

interface RowRulesEditorProps {
  sourceId: string;
  captureEngineId: string | null;
  /** Null: it is not created yet. */
  stream: { id: string; name: string } | null;
  place: RulePlace;
  /** All rules; those of the place are edited. */
  rules: TableRules;
  /** The tables that `rules` choose, as far as they are known. */
  tables: TableName[];
  onSave: (own: ScopedRules | null) => void;
  onClose: () => void;
}

/** The rules of one table, of a schema, or of all tables. They are kept in the form around it, which saves or creates
 * the stream. */
export function RowRulesEditor(props: RowRulesEditorProps) {
  const { sourceId, captureEngineId, stream, place, rules, tables, onSave, onClose } = props;
  const [draft, setDraft] = useState(() => draftOf(rowRulesOf(rules, place)));
  const [tried, setTried] = useState<string | null>(null);
  const check = useRulesCheck();
  const test = useRulesTest();
  const isWide = !place.table;
  const concerned = isWide
    ? tables.filter((table) => concerns(place, table))
    : [{ schema: place.schema ?? "", table: place.table ?? "" }];
  const table = concerned.find((candidate) => placeInWords(candidate) === tried) ?? concerned[0];
  const known = useQuery({ ...columnsQuery(sourceId, table ?? NO_TABLE), enabled: table !== undefined });
  const columns = known.data?.columns ?? [];
  const own = rulesOf(place, draft);
  const beside = (rules.row_rules ?? []).filter(
    (other) => !isSamePlace(other, place) && overlap(other, place),
  );
  const taken = new Set(
    beside.flatMap(({ positive, negative }) =>
      [...(positive ?? []), ...(negative ?? [])].map(({ name }) => name),
    ),
  );
  const wider = beside.filter((other) => other.table === null || other.table === undefined);
  const valid = draft.rules.every((rule) => faultOfName(draft, rule, taken) === undefined);
  const problems = (check.data ?? test.data)?.problems ?? [];
  const isSubset = draft.subset && mayBeSubset(draft);
  const ofOthers = problems.filter(({ rule }) => !draft.rules.some(({ name }) => name.trim() === rule));
  const hasPositive = draft.rules.some((rule) => rule.positive);
  const asked = { source_id: sourceId, capture_engine_id: captureEngineId };
  const insertsOnly = (rules.inserts_only ?? []).filter((ref) => concerns(place, ref));
  const { include, exclude } = completeRules(rules);

  // The problems are about the text before.
  const change = (next: RulesDraft) => {
    check.reset();
    test.reset();
    setDraft(next);
  };
  const add = (positive: boolean) => {
    const key = Math.max(-1, ...draft.rules.map((rule) => rule.key)) + 1;
    const added: RuleDraft = { key, positive, name: "", operations: [], condition: "", onError: "stop" };
    change({ ...draft, rules: [...draft.rules, added] });
  };
  const replace = (rule: RuleDraft) =>
    change({ ...draft, rules: draft.rules.map((kept) => (kept.key === rule.key ? rule : kept)) });

  return (
    <Stack gap="sm">
      <Text size="sm" c="dimmed">
        A change passes if no negative rule is true for it and, where there are positive rules, at least one
        of them is. The rules of a table, of its schema and of all tables decide together. The initial copy
        takes the rows whose insert would pass. <HelpLink help="guides/rules" about="row rules" />
      </Text>
      {known.isError && (
        <ProblemAlert
          tone="warning"
          problem={{ ...problemInWords(known.error), title: "No columns to offer" }}
        />
      )}
      {draft.rules.map((rule) => (
        <RowRuleFields
          key={rule.key}
          rule={rule}
          fault={faultOfName(draft, rule, taken)}
          problems={problems.filter((problem) => problem.rule === rule.name.trim())}
          isWide={isWide}
          columns={columns}
          readsRows={!(rule.positive && isSubset)}
          onChange={replace}
          onRemove={() => change({ ...draft, rules: draft.rules.filter((kept) => kept.key !== rule.key) })}
        />
      ))}
      <Group gap="xs">
        <AddRule label="Add a positive rule" onClick={() => add(true)} asks />
        <AddRule label="Add a negative rule" onClick={() => add(false)} />
      </Group>
      {hasPositive ? (
        <Checkbox
          size="sm"
          label="Subset: rows come and go"
          description="The destination keeps exactly the rows for which the rules are true: an update that brings a row in becomes an insert, one that takes a row out becomes a delete. Not available if a positive rule names operations."
          checked={isSubset}
          disabled={!mayBeSubset(draft)}
          onChange={(event) => change({ ...draft, subset: event.currentTarget.checked })}
        />
      ) : (
        <Checkbox
          size="sm"
          label="Nothing passes"
          description="Until you add a positive rule."
          checked={draft.nothingPasses}
          onChange={(event) => change({ ...draft, nothingPasses: event.currentTarget.checked })}
        />
      )}
      {ofOthers.map((problem) => (
        <ProblemAlert
          key={`${problem.schema}.${problem.table} ${problem.message}`}
          problem={asAlert(problem)}
        />
      ))}
      {check.isError && <ProblemAlert problem={problemInWords(check.error)} />}
      {check.data && !problems.some((problem) => problem.certain) && (
        <Group gap={6} role="status">
          <ToneIcon tone="good" />
          <Text size="sm">The rules fit {isWide ? "these tables" : "the table"} at the source.</Text>
        </Group>
      )}
      <RulesTrial
        asked={
          valid && own && table
            ? {
                ...asked,
                table: { schema: table.schema, table: table.table },
                row_rules: [own, ...beside.filter((other) => concerns(other, table))],
              }
            : null
        }
        stream={stream}
        test={test}
        onTry={(body) => {
          check.reset();
          test.mutate(body);
        }}
        order={columns.map(({ name }) => name)}
        choice={
          isWide && (
            <Select
              label="Table"
              searchable
              limit={100}
              maw={320}
              allowDeselect={false}
              data={concerned.map(placeInWords)}
              value={table ? placeInWords(table) : null}
              onChange={(chosen) => {
                test.reset();
                setTried(chosen);
              }}
            />
          )
        }
      />
      <Group justify="space-between">
        <Button
          variant="default"
          loading={check.isPending}
          disabled={!own || !valid}
          onClick={() =>
            own &&
            check.mutate({
              ...asked,
              row_rules: [own, ...wider],
              ...(isWide ? { include, exclude } : {}),
              ...(insertsOnly.length > 0 ? { inserts_only: insertsOnly } : {}),
            })
          }
        >
          Check
        </Button>
        <Group gap="xs">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button disabled={!valid} onClick={() => onSave(own)}>
            Use these rules
          </Button>
        </Group>
      </Group>
    </Stack>
  );
}

interface AddRuleProps {
  label: string;
  onClick: () => void;
  /** For the focus of a dialog that has no rule yet. */
  asks?: boolean;
}

function AddRule({ label, onClick, asks }: AddRuleProps) {
  return (
    <Button
      data-autofocus={asks}
      size="compact-xs"
      variant="subtle"
      leftSection={<IconPlus size={13} aria-hidden />}
      onClick={onClick}
    >
      {label}
    </Button>
  );
}

function asAlert({ code, message, cure }: RuleProblem) {
  return { title: "The rules do not fit the table", message, cure, code };
}
