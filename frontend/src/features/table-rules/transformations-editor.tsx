import {
  ActionIcon,
  Autocomplete,
  Button,
  Fieldset,
  Group,
  NumberInput,
  Select,
  Stack,
  TagsInput,
  Text,
  Textarea,
  TextInput,
} from "@mantine/core";
import { IconPlus, IconX } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { columnsQuery } from "@/api/databases";
import { problemInWords } from "@/api/problem-in-words";
import type { TableTransformations, Transformation } from "@/api/types";
import { HelpLink } from "@/ui/help-link";
import { ProblemAlert } from "@/ui/problem-alert";
import type { TableName } from "./rule-scopes";
import {
  addedTypes,
  computedTypes,
  type Deed,
  deeds,
  draftsOf,
  emptyStep,
  faultOfStep,
  namesBefore,
  type StepDraft,
  stepOf,
} from "./transformation-drafts";

interface TransformationsEditorProps {
  sourceId: string;
  table: TableName;
  own: TableTransformations | undefined;
  onSave: (steps: Transformation[]) => void;
  onClose: () => void;
}

/** The transformations of one table. They are kept in the form around it, which saves or creates the stream. */
export function TransformationsEditor({ sourceId, table, own, onSave, onClose }: TransformationsEditorProps) {
  const [steps, setSteps] = useState(() => draftsOf(own));
  const known = useQuery(columnsQuery(sourceId, table));
  const columns = (known.data?.columns ?? []).map(({ name }) => name);
  const isValid = steps.every((step) => faultOfStep(step) === undefined);
  const add = () => {
    const key = Math.max(-1, ...steps.map((step) => step.key)) + 1;
    setSteps([...steps, { ...emptyStep, key }]);
  };
  return (
    <Stack gap="sm">
      <Text size="sm" c="dimmed">
        Carried out one after the other, before a change leaves the engine that captures, and while rows are
        copied. Rules of the table see it as it is at the source. Columns of the key can be renamed, but
        neither dropped, masked nor cast. <HelpLink help="guides/transformations" about="transformations" />
      </Text>
      {known.isError && (
        <ProblemAlert
          tone="warning"
          problem={{ ...problemInWords(known.error), title: "No columns to offer" }}
        />
      )}
      {steps.map((step, place) => (
        <StepFields
          key={step.key}
          step={step}
          number={place + 1}
          names={namesBefore(columns, steps.slice(0, place))}
          onChange={(next) => setSteps(steps.map((kept) => (kept.key === step.key ? next : kept)))}
          onRemove={() => setSteps(steps.filter((kept) => kept.key !== step.key))}
        />
      ))}
      <Group gap="xs">
        <Button
          data-autofocus
          size="compact-xs"
          variant="subtle"
          leftSection={<IconPlus size={13} aria-hidden />}
          onClick={add}
        >
          Add a transformation
        </Button>
      </Group>
      <Group justify="flex-end" gap="xs">
        <Button variant="default" onClick={onClose}>
          Cancel
        </Button>
        <Button disabled={!isValid} onClick={() => onSave(steps.map(stepOf))}>
          Use these transformations
        </Button>
      </Group>
    </Stack>
  );
}

interface StepFieldsProps {
  step: StepDraft;
  number: number;
  /** The columns' names that the step finds. */
  names: string[];
  onChange: (step: StepDraft) => void;
  onRemove: () => void;
}

function StepFields({ step, number, names, onChange, onRemove }: StepFieldsProps) {
  const kept = (text: string | number) => (typeof text === "number" ? text : 0);
  return (
    <Fieldset legend={`Transformation ${number}`} p="xs">
      <Group gap={6} align="flex-end" wrap="nowrap">
        {step.deed === "keep" ? (
          <TagsInput
            data-autofocus
            label="Columns"
            limit={100}
            data={names}
            value={step.columns}
            onChange={(columns) => onChange({ ...step, columns })}
            flex={2}
          />
        ) : (
          <Autocomplete
            data-autofocus
            openOnFocus={false}
            label="Column"
            limit={100}
            data={step.deed === "add" || step.deed === "compute" ? [] : names}
            value={step.column}
            maxLength={63}
            onChange={(column) => onChange({ ...step, column })}
            flex={1}
          />
        )}
        <Select
          label="Result"
          allowDeselect={false}
          data={deeds}
          value={step.deed}
          onChange={(deed) => onChange({ ...step, deed: deed as Deed })}
          flex={1}
        />
        {step.deed === "rename" && (
          <TextInput
            label="New name"
            value={step.to}
            maxLength={63}
            onChange={(event) => onChange({ ...step, to: event.currentTarget.value })}
            flex={1}
          />
        )}
        {(step.deed === "add" || step.deed === "compute" || step.deed === "cast") && (
          <Select
            label="Type"
            allowDeselect={false}
            data={step.deed === "add" ? addedTypes : computedTypes}
            value={step.dataType}
            onChange={(dataType) => onChange({ ...step, dataType: dataType ?? step.dataType })}
            flex={1}
          />
        )}
        {(step.deed === "constant" || step.deed === "add") && (
          <TextInput
            label="Constant"
            value={step.value}
            onChange={(event) => onChange({ ...step, value: event.currentTarget.value })}
            flex={1}
          />
        )}
        {step.deed === "partial" && (
          <>
            <NumberInput
              label="Keep first"
              min={0}
              max={1000}
              allowDecimal={false}
              w={90}
              value={step.keepFirst}
              onChange={(value) => onChange({ ...step, keepFirst: kept(value) })}
            />
            <NumberInput
              label="Keep last"
              min={0}
              max={1000}
              allowDecimal={false}
              w={90}
              value={step.keepLast}
              onChange={(value) => onChange({ ...step, keepLast: kept(value) })}
            />
          </>
        )}
        <ActionIcon aria-label={`Remove transformation ${number}`} onClick={onRemove} mb={6}>
          <IconX size={15} aria-hidden />
        </ActionIcon>
      </Group>
      {step.deed === "compute" && (
        <Textarea
          label="Expression"
          description={
            <>
              In the language of rules, over the source's columns under their names at this step. Masked ones
              cannot be read. <HelpLink help="reference/rule-language" about="the language of rules" />
            </>
          }
          placeholder="price * amount"
          autosize
          maxRows={12}
          spellCheck={false}
          mt={6}
          value={step.expression}
          onChange={(event) => onChange({ ...step, expression: event.currentTarget.value })}
          styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
        />
      )}
    </Fieldset>
  );
}
