import { Group, Radio, Select, Stack, Text } from "@mantine/core";
import { useState } from "react";
import type { Database, Engine } from "@/api/types";
import { sentenceCase } from "@/lib/states";
import { ProblemAlert } from "@/ui/problem-alert";

interface EngineChoiceProps {
  engines: Engine[];
  /** Captures, and applies too unless another is chosen for that. */
  engineId: string | null;
  destinations: Pick<Database, "id" | "name">[];
  /** By the destination's database. */
  applyEngineIds: Record<string, string>;
  onChange: (engineId: string | null, applyEngineIds: Record<string, string>) => void;
}

function placed(now: Record<string, string>, id: string, engineId: string | null): Record<string, string> {
  const { [id]: _, ...others } = now;
  return engineId ? { ...others, [id]: engineId } : others;
}

/** Where capture and apply run. Shown only when there is something to choose. */
export function EngineChoice(props: EngineChoiceProps) {
  const { engines, engineId, destinations, applyEngineIds, onChange } = props;
  const elsewhere = destinations.filter(({ id }) => (applyEngineIds[id] ?? engineId) !== engineId);
  const [two, setTwo] = useState(elsewhere.length > 0);
  if (engines.length === 0) {
    return (
      <ProblemAlert
        problem={{
          title: "No engine is enrolled",
          message: "A stream runs in an engine (thalwegd).",
          cure: "Enrol one on the Engines page, then come back.",
        }}
      />
    );
  }
  if (engines.length === 1) return null;
  const data = engines.map((engine) => ({
    value: engine.id,
    label: `${engine.name} (${sentenceCase(engine.state)})`,
  }));
  const choose = (value: string) => {
    setTwo(value === "two");
    onChange(engineId, {});
  };
  return (
    <Stack gap="sm">
      <Radio.Group label="Engines" value={two ? "two" : "one"} onChange={choose}>
        <Stack gap={6} mt={4}>
          <Radio
            value="one"
            label="One engine captures and applies"
            description="Simplest and fastest when source and destination are near each other."
          />
          <Radio
            value="two"
            label="One engine captures, another applies"
            description="For a source and a destination that are far apart. Each engine runs near its database, and changes travel between the two compressed and encrypted over one connection."
          />
        </Stack>
      </Radio.Group>
      {two ? (
        <Group align="flex-start" grow maw={860}>
          <Select
            label="Captures"
            description="Best on a host near the source."
            data={data}
            value={engineId}
            onChange={(id) => onChange(id, applyEngineIds)}
          />
          {destinations.map(({ id, name }) => (
            <Select
              key={id}
              label={destinations.length > 1 ? `Applies at ${name}` : "Applies"}
              description="Best on a host near the destination."
              data={destinations.length > 1 ? data : data.filter(({ value }) => value !== engineId)}
              value={applyEngineIds[id] ?? (destinations.length > 1 ? engineId : null)}
              onChange={(chosen) => onChange(engineId, placed(applyEngineIds, id, chosen))}
            />
          ))}
        </Group>
      ) : (
        <Select
          label="Engine"
          description="The process that runs the stream. Best on a host near the destination."
          data={data}
          value={engineId}
          onChange={(id) => onChange(id, {})}
          maw={420}
        />
      )}
      {two && elsewhere.length === 0 && (
        <Text size="sm" c="dimmed">
          One engine does both until you choose another one to apply.
        </Text>
      )}
    </Stack>
  );
}
