import { Box, Group, Slider, Text } from "@mantine/core";
import { useState } from "react";
import type { LabLoad } from "@/api/types";
import { formatCount } from "@/lib/format";
import { ToneBadge } from "@/ui/tone";
import { stateOfAction } from "./states";
import { TimeLeft } from "./time-left";

const STEPS = [0, 50, 100, 200, 500, 1000];

interface LoadSliderProps {
  load: LabLoad;
  disabled: boolean;
  onRate: (rate: number) => void;
}

/** The demo's transactions a second, in steps: what is chosen is sent when the thumb is let go. */
export function LoadSlider({ load, disabled, onRate }: LoadSliderProps) {
  const [chosen, setChosen] = useState<number | null>(null);
  const { rate, usual_rate, rate_max } = load;
  const steps = [...new Set([...STEPS, usual_rate, rate, rate_max])]
    .filter((step) => step <= rate_max)
    .sort((a, b) => a - b);
  const place = chosen ?? steps.indexOf(rate);
  const shown = steps[place] ?? rate;
  return (
    <Box>
      <Group justify="space-between" mb={6}>
        <Text size="sm">
          <strong>{formatCount(shown)}</strong> transactions a second
          {shown === usual_rate && (
            <Text span c="dimmed">
              {" – the usual load"}
            </Text>
          )}
        </Text>
        <Group gap={8}>
          {load.until && load.state !== "ending" && <TimeLeft until={load.until} />}
          {load.state !== "off" && <ToneBadge state={stateOfAction[load.state]} compact />}
        </Group>
      </Group>
      <Box px={8} pb={24}>
        <Slider
          thumbLabel="Load, in transactions a second"
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
            if (wanted !== undefined && wanted !== rate) onRate(wanted);
          }}
          marks={steps.map((step, value) => ({ value, label: formatCount(step) }))}
          styles={{ markLabel: { fontSize: 11 } }}
        />
      </Box>
      {load.failure && (
        <Text size="sm" c="var(--tone-bad)">
          {load.failure}
        </Text>
      )}
    </Box>
  );
}
