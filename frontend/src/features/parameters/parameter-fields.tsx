import {
  Badge,
  Box,
  Button,
  Group,
  NumberInput,
  Select,
  Stack,
  Switch,
  Text,
  TextInput,
  Title,
  Tooltip,
} from "@mantine/core";
import { IconChevronDown } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { sessionQuery } from "@/api/session";
import type { ParameterValue, StreamParameter } from "@/api/types";
import { covers } from "@/lib/session-role";
import { sentenceCase } from "@/lib/states";
import { ComparedTables } from "./compared-tables";
import { ConflictHandlers } from "./conflict-handlers";
import { ErrorPolicies } from "./error-policies";
import classes from "./parameter-fields.module.css";
import {
  byComponent,
  byNeed,
  comparedOf,
  handlersOf,
  parameterFault,
  policiesOf,
  rangeInWords,
  sameValue,
  statementsOf,
  type Values,
} from "./parameter-values";
import { StatementHandlers } from "./statement-handlers";

interface ParameterFieldsProps {
  definitions: StreamParameter[];
  values: Values;
  /** Values in force now; a field that differs is marked. */
  base: Values;
  onChange: (name: string, value: ParameterValue) => void;
  disabled?: boolean;
  /** Content beside a parameter's name. */
  beside?: (name: string) => ReactNode;
}

export function ParameterFields(props: ParameterFieldsProps) {
  const { definitions } = props;
  const [all, setAll] = useState(false);
  const { basic, advanced } = byNeed(definitions);
  const changed = advanced.filter(
    ({ name, default: usual }) => !sameValue(props.values[name] ?? usual, usual),
  ).length;
  return (
    <Stack gap="lg">
      <Groups {...props} definitions={basic} asks />
      {advanced.length > 0 && (
        <Button
          variant="subtle"
          color="gray"
          aria-expanded={all}
          onClick={() => setAll(!all)}
          leftSection={<IconChevronDown size={14} aria-hidden style={all ? { rotate: "180deg" } : {}} />}
          style={{ alignSelf: "flex-start" }}
        >
          {all ? "Hide" : "Show"} {advanced.length} advanced parameters
          {changed > 0 && `, ${changed} not at ${changed === 1 ? "its default" : "their defaults"}`}
        </Button>
      )}
      {all && <Groups {...props} definitions={advanced} />}
    </Stack>
  );
}

interface GroupsProps extends ParameterFieldsProps {
  /** Its first field asks for the focus of a dialog. */
  asks?: boolean;
}

function Groups({ definitions, values, base, onChange, disabled, beside, asks }: GroupsProps) {
  const groups = byComponent(definitions);
  const first = asks ? groups[0]?.[1][0] : undefined;
  return (
    <>
      {groups.map(([component, group]) => (
        <Box key={component} component="section" aria-label={`${sentenceCase(component)} parameters`}>
          <Title order={3} mb={2} c="dimmed">
            {sentenceCase(component)}
          </Title>
          {group.map((definition) => (
            <Row
              key={definition.name}
              definition={definition}
              value={values[definition.name] ?? definition.default}
              changed={
                values[definition.name] !== undefined &&
                !sameValue(values[definition.name], base[definition.name])
              }
              onChange={(value) => onChange(definition.name, value)}
              disabled={disabled}
              beside={beside?.(definition.name)}
              asks={definition === first}
            />
          ))}
        </Box>
      ))}
    </>
  );
}

interface RowProps {
  definition: StreamParameter;
  value: ParameterValue;
  changed: boolean;
  onChange: (value: ParameterValue) => void;
  disabled?: boolean;
  beside?: ReactNode;
  asks: boolean;
}

function Row(props: RowProps) {
  const { definition, changed, beside } = props;
  return (
    <div className={classes.row} data-changed={changed || undefined}>
      <Box miw={0}>
        <Group gap={8}>
          <Text size="sm" fw={600} ff="monospace" id={`parameter-${definition.name}`}>
            {definition.name}
          </Text>
          <Tooltip
            label={
              definition.live
                ? "A change takes effect while the stream runs."
                : "Changing it restarts the stream's components."
            }
          >
            <Badge size="sm">{definition.live ? "live" : "restarts components"}</Badge>
          </Tooltip>
          {changed && (
            <Badge size="sm" styles={{ root: { color: "var(--accent)", borderColor: "var(--accent)" } }}>
              changed
            </Badge>
          )}
          {beside}
        </Group>
        <Text size="xs" c="dimmed">
          {definition.description} <span className={classes.range}>({rangeInWords(definition)})</span>
        </Text>
      </Box>
      <Field {...props} />
    </div>
  );
}

function Statements({ value, onChange, disabled }: Pick<RowProps, "value" | "onChange" | "disabled">) {
  // The page knows it already: nothing is asked for.
  const { data: session } = useQuery({ ...sessionQuery, enabled: false });
  return (
    <StatementHandlers
      handlers={statementsOf(value)}
      onChange={onChange}
      disabled={disabled}
      mayChange={covers(session?.user.role, "admin")}
    />
  );
}

function Field({ definition, value, onChange, disabled, asks }: RowProps) {
  const fault = parameterFault(definition, value);
  const focus = { "data-autofocus": asks || undefined };
  if (definition.type === "boolean") {
    return (
      <Switch
        {...focus}
        aria-label={definition.name}
        checked={value === true}
        onChange={(event) => onChange(event.currentTarget.checked)}
        disabled={disabled}
        label={value === true ? "On" : "Off"}
      />
    );
  }
  if (definition.type === "error_policies")
    return <ErrorPolicies policies={policiesOf(value)} onChange={onChange} disabled={disabled} />;
  if (definition.type === "conflict_handlers")
    return <ConflictHandlers handlers={handlersOf(value)} onChange={onChange} disabled={disabled} />;
  if (definition.type === "conflict_detection")
    return <ComparedTables tables={comparedOf(value)} onChange={onChange} disabled={disabled} />;
  if (definition.type === "statement_handlers")
    return <Statements value={value} onChange={onChange} disabled={disabled} />;
  if (definition.type === "text") {
    return (
      <TextInput
        {...focus}
        aria-label={definition.name}
        value={String(value)}
        onChange={(event) => onChange(event.currentTarget.value)}
        error={fault}
        disabled={disabled}
      />
    );
  }
  if (definition.type === "enum") {
    return (
      <Select
        {...focus}
        aria-label={definition.name}
        data={definition.values ?? []}
        value={String(value)}
        onChange={(chosen) => chosen !== null && onChange(chosen)}
        allowDeselect={false}
        error={fault}
        disabled={disabled}
      />
    );
  }
  return (
    <NumberInput
      {...focus}
      aria-label={definition.name}
      value={typeof value === "number" ? value : String(value)}
      onChange={onChange}
      min={definition.minimum ?? undefined}
      max={definition.maximum ?? undefined}
      clampBehavior="none"
      allowDecimal={false}
      suffix={definition.unit ? ` ${definition.unit}` : undefined}
      thousandSeparator=","
      error={fault}
      disabled={disabled}
    />
  );
}
