import { Box, Text } from "@mantine/core";
import type { LabCause } from "@/api/types";
import { StepSlider } from "./step-slider";

const STEPS = [5, 10, 25, 50, 100];

interface DelaySliderProps {
  ms: number;
  delay: NonNullable<LabCause["delay"]>;
  disabled: boolean;
  onMs: (ms: number) => void;
}

/** How late everything is. */
export function DelaySlider({ ms, delay, disabled, onMs }: DelaySliderProps) {
  return (
    <Box>
      <StepSlider
        label="Delay each way, in milliseconds"
        steps={STEPS}
        value={ms}
        also={[delay.usual_ms, delay.ms_max]}
        disabled={disabled}
        mark={String}
        onValue={onMs}
      >
        {(shown) => (
          <Text size="sm" mb={6}>
            <strong>{shown} ms</strong> delay each way
            <Text span c="dimmed">
              {` – a round trip takes ${2 * shown} ms more`}
            </Text>
          </Text>
        )}
      </StepSlider>
    </Box>
  );
}
