import { Button, Checkbox, Group, Stack, Text } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { columnsQuery } from "@/api/databases";
import { problemInWords } from "@/api/problem-in-words";
import { useRulesCheck, useRulesTest } from "@/api/streams";
import type { RuleProblem, TableRowRules } from "@/api/types";
import { HelpLink } from "@/ui/help-link";
import { ProblemAlert } from "@/ui/problem-alert";
import { ToneIcon } from "@/ui/tone";
import { RowRuleFields } from "./row-rule-fields";
import { draftOf, faultOfName, mayBeSubset, type RuleDraft, type RulesDraft, rulesOf } from "./rule-drafts";
import { RulesTrial } from "./rules-trial";

interface RowRulesEditorProps {
  sourceId: string;
  captureEngineId: string | null;
  table: { schema: string; table: string };
  insertsOnly: boolean;
  own: TableRowRules | undefined;
  onSave: (own: TableRowRules | null) => void;
  onClose: () => void;
}

/** The rules of one table. They are kept in the form around it, which saves or creates the stream. */
export function RowRulesEditor(props: RowRulesEditorProps) {
  const { sourceId, captureEngineId, table, insertsOnly, own, onSave, onClose } = props;
  const [draft, setDraft] = useState(() => draftOf(own));
  const check = useRulesCheck();
  const test = useRulesTest();
  const known = useQuery(columnsQuery(sourceId, table));
  const columns = known.data?.columns ?? [];
  const rules = rulesOf(table, draft);
  const valid = draft.rules.every((rule) => faultOfName(draft, rule) === undefined);
  const findings = (check.data ?? test.data)?.findings ?? [];
  const isSubset = draft.subset && mayBeSubset(draft);
  const ofTable = findings.filter(({ rule }) => rule === null);
  const hasPositive = draft.rules.some((rule) => rule.positive);

  // The findings are about the text before.
  const change = (next: RulesDraft) => {
    check.reset();
    test.reset();
    setDraft(next);
  };
  const add = (positive: boolean) => {
    const key = Math.max(-1, ...draft.rules.map((rule) => rule.key)) + 1;
    const added: RuleDraft = { key, positive, name: "", operations: [], condition: "" };
    change({ ...draft, rules: [...draft.rules, added] });
  };
  const replace = (rule: RuleDraft) =>
    change({ ...draft, rules: draft.rules.map((kept) => (kept.key === rule.key ? rule : kept)) });

  return (
    <Stack gap="sm">
      <Text size="sm" c="dimmed">
        A change passes unless a rule keeps it out; and if a rule lets it pass, where there is a rule of that
        kind. The initial copy takes the rows whose insert would pass.{" "}
        <HelpLink help="guides/rules" about="rules of tables" />
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
          fault={faultOfName(draft, rule)}
          findings={findings.filter((finding) => finding.rule === rule.name.trim())}
          columns={columns}
          readsRows={!(rule.positive && isSubset)}
          onChange={replace}
          onRemove={() => change({ ...draft, rules: draft.rules.filter((kept) => kept.key !== rule.key) })}
        />
      ))}
      <Group gap="xs">
        <AddRule label="Add a rule that lets pass" onClick={() => add(true)} />
        <AddRule label="Add a rule that keeps out" onClick={() => add(false)} />
      </Group>
      {hasPositive ? (
        <Checkbox
          size="sm"
          label="Subset: rows come and go"
          description="The destination keeps exactly the rows for which the rules are true: an update that brings a row in becomes an insert, one that takes it out becomes a delete. Not where a rule that lets pass is for some operations only."
          checked={isSubset}
          disabled={!mayBeSubset(draft)}
          onChange={(event) => change({ ...draft, subset: event.currentTarget.checked })}
        />
      ) : (
        <Checkbox
          size="sm"
          label="Nothing passes"
          description="As long as no rule lets anything pass."
          checked={draft.nothingPasses}
          onChange={(event) => change({ ...draft, nothingPasses: event.currentTarget.checked })}
        />
      )}
      {ofTable.map((finding) => (
        <ProblemAlert key={finding.message} problem={asAlert(finding)} />
      ))}
      {check.isError && <ProblemAlert problem={problemInWords(check.error)} />}
      {check.data && !findings.some((finding) => finding.certain) && (
        <Group gap={6} role="status">
          <ToneIcon tone="good" />
          <Text size="sm">The rules fit the table at the source.</Text>
        </Group>
      )}
      <RulesTrial
        asked={valid && rules ? { source_id: sourceId, capture_engine_id: captureEngineId, rules } : null}
        test={test}
        onTry={(body) => {
          check.reset();
          test.mutate(body);
        }}
        order={columns.map(({ name }) => name)}
      />
      <Group justify="space-between">
        <Button
          variant="default"
          loading={check.isPending}
          disabled={!rules || !valid}
          onClick={() =>
            rules &&
            check.mutate({
              source_id: sourceId,
              capture_engine_id: captureEngineId,
              row_rules: [rules],
              ...(insertsOnly ? { inserts_only: [table] } : {}),
            })
          }
        >
          Check
        </Button>
        <Group gap="xs">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button disabled={!valid} onClick={() => onSave(rules)}>
            Use these rules
          </Button>
        </Group>
      </Group>
    </Stack>
  );
}

function AddRule({ label, onClick }: { label: string; onClick: () => void }) {
  return (
    <Button
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
  return { title: "The table's rules cannot be kept", message, cure, code };
}
