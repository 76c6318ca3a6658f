import { Group, Radio, Select, Stack, Text } from "@mantine/core";
import { useState } from "react";
import type { Engine } from "@/api/types";
import { sentenceCase } from "@/lib/states";
import { ProblemAlert } from "@/ui/problem-alert";

interface EngineChoiceProps {
  engines: Engine[];
  /** Captures, and applies too unless another is chosen for that. */
  engineId: string | null;
  applyEngineId: string | null;
  onChange: (engineId: string | null, applyEngineId: string | null) => void;
}

/** Where capture and apply run. Shown only when there is something to choose. */
export function EngineChoice({ engines, engineId, applyEngineId, onChange }: EngineChoiceProps) {
  const [two, setTwo] = useState(applyEngineId !== null && applyEngineId !== engineId);
  if (engines.length === 0) {
    return (
      <ProblemAlert
        problem={{
          title: "No engine is enrolled",
          message: "A stream runs in an engine (thalwegd).",
          cure: "Enrol one on the page Engines, then come back.",
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
    onChange(engineId, null);
  };
  return (
    <Stack gap="sm">
      <Radio.Group label="Engines" value={two ? "two" : "one"} onChange={choose}>
        <Stack gap={6} mt={4}>
          <Radio
            value="one"
            label="One engine captures and applies"
            description="The simplest and fastest when source and destination are near each other."
          />
          <Radio
            value="two"
            label="One engine captures, another applies"
            description="When source and destination are far apart: each engine stands beside its database, and the changes travel between the two compressed, encrypted and over one connection."
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
            onChange={(id) => onChange(id, applyEngineId)}
          />
          <Select
            label="Applies"
            description="Best on a host near the destination."
            data={data.filter(({ value }) => value !== engineId)}
            value={applyEngineId}
            onChange={(id) => onChange(engineId, id)}
          />
        </Group>
      ) : (
        <Select
          label="Engine"
          description="The process that runs the stream. Best on a host near the destination."
          data={data}
          value={engineId}
          onChange={(id) => onChange(id, null)}
          maw={420}
        />
      )}
      {two && !applyEngineId && (
        <Text size="sm" c="dimmed">
          Until both are chosen, one engine does both.
        </Text>
      )}
    </Stack>
  );
}
