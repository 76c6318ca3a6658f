import { ActionIcon, Checkbox, Code, Fieldset, Group, Select, Stack, Text, TextInput } from "@mantine/core";
import { IconX } from "@tabler/icons-react";
import type { RuledOperation, RuleProblem, SourceColumn } from "@/api/types";
import { ToneIcon } from "@/ui/tone";
import { ConditionField } from "./condition-field";
import { operations, policies, type RuleDraft } from "./rule-drafts";
import { markedLine } from "./rule-place";

interface RowRuleFieldsProps {
  rule: RuleDraft;
  /** Of its name. */
  fault: string | undefined;
  problems: RuleProblem[];
  /** The rule is for several tables: problems that are about some of them say which. */
  isWide: boolean;
  /** The table's, as far as they are known. */
  columns: SourceColumn[];
  /** The rule may tell the old row from the new: it makes no subset. */
  readsRows: boolean;
  onChange: (rule: RuleDraft) => void;
  onRemove: () => void;
}

export function RowRuleFields(props: RowRuleFieldsProps) {
  const { rule, fault, problems, isWide, columns, readsRows, onChange, onRemove } = props;
  const legend = rule.positive ? "Positive rule" : "Negative rule";
  const called = rule.name.trim() || "the new rule";
  return (
    <Fieldset legend={legend} p="xs">
      <Stack gap="xs">
        <Group gap={6} align="flex-start" wrap="nowrap">
          <TextInput
            data-autofocus
            aria-label="Name of the rule"
            placeholder="name"
            value={rule.name}
            maxLength={63}
            error={rule.name === "" ? undefined : fault}
            onChange={(event) => onChange({ ...rule, name: event.currentTarget.value })}
            flex={1}
          />
          <ActionIcon aria-label={`Remove ${called}`} onClick={onRemove} mt={6}>
            <IconX size={15} aria-hidden />
          </ActionIcon>
        </Group>
        <Checkbox.Group
          label="Operations"
          description="Tick none to apply the rule to all of them."
          value={rule.operations}
          onChange={(chosen) =>
            onChange({ ...rule, operations: operations.filter((operation) => chosen.includes(operation)) })
          }
        >
          <Group gap="sm" mt={4}>
            {operations.map((operation: RuledOperation) => (
              <Checkbox key={operation} size="sm" value={operation} label={operation} />
            ))}
          </Group>
        </Checkbox.Group>
        <ConditionField
          value={rule.condition}
          columns={columns}
          readsRows={readsRows}
          onChange={(condition) => onChange({ ...rule, condition })}
        />
        {rule.condition.trim() !== "" && (
          <Select
            label="If the condition cannot be evaluated"
            description="For a change that lacks a value which the condition needs, or for which it fails (a division by zero). The initial copy stops at a row for which it fails."
            data={policies}
            allowDeselect={false}
            maw={320}
            value={rule.onError}
            onChange={(onError) => onError && onChange({ ...rule, onError })}
          />
        )}
        {problems.map((problem) => (
          <PlacedProblem
            key={`${problem.schema}.${problem.table} ${problem.offset} ${problem.message}`}
            problem={problem}
            isWide={isWide}
            condition={rule.condition}
          />
        ))}
      </Stack>
    </Fieldset>
  );
}

interface PlacedProblemProps {
  problem: RuleProblem;
  isWide: boolean;
  condition: string;
}

function PlacedProblem({ problem, isWide, condition }: PlacedProblemProps) {
  const line = markedLine(condition, problem);
  return (
    <Stack gap={4} role={problem.certain ? "alert" : "note"}>
      <Group gap={6} wrap="nowrap" align="flex-start">
        <ToneIcon tone={problem.certain ? "bad" : "warning"} size={14} />
        <Text size="sm">
          {isWide && problem.table && `${problem.schema}.${problem.table}: `}
          {line && `Line ${problem.line}, column ${problem.column}: `}
          {problem.message}
        </Text>
      </Group>
      {line && (
        <Code block>
          {line.before}
          <mark>{line.marked || " "}</mark>
          {line.after}
        </Code>
      )}
      <Text size="xs" c="dimmed">
        {problem.cure}
      </Text>
    </Stack>
  );
}
