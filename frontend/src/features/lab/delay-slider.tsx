import { Box, Slider, Text } from "@mantine/core";
import { useState } from "react";
import type { LabCause } from "@/api/types";

const STEPS = [5, 10, 25, 50, 100];

interface DelaySliderProps {
  ms: number;
  delay: NonNullable<LabCause["delay"]>;
  disabled: boolean;
  onMs: (ms: number) => void;
}

/** How late everything is, in steps: what is chosen is told when the thumb is let go. */
export function DelaySlider({ ms, delay, disabled, onMs }: DelaySliderProps) {
  const [chosen, setChosen] = useState<number | null>(null);
  const steps = [...new Set([...STEPS, delay.usual_ms, ms, delay.ms_max])]
    .filter((step) => step <= delay.ms_max)
    .sort((a, b) => a - b);
  const place = chosen ?? steps.indexOf(ms);
  const shown = steps[place] ?? ms;
  return (
    <Box>
      <Text size="sm" mb={6}>
        <strong>{shown} ms</strong> later each way
        <Text span c="dimmed">
          {` – a round trip takes ${2 * shown} ms more`}
        </Text>
      </Text>
      <Box px={8} pb={24}>
        <Slider
          thumbLabel="Delay each way, in milliseconds"
          disabled={disabled}
          label={null}
          min={0}
          max={steps.length - 1}
          step={1}
          value={place}
          onChange={setChosen}
          onChangeEnd={(value) => {
            setChosen(null);
            const wanted = steps[value];
            if (wanted !== undefined && wanted !== ms) onMs(wanted);
          }}
          marks={steps.map((step, value) => ({ value, label: `${step}` }))}
          styles={{ markLabel: { fontSize: 11 } }}
        />
      </Box>
    </Box>
  );
}
