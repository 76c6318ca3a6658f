import { Box, Group, Text } from "@mantine/core";
import type { LabLoad } from "@/api/types";
import { formatCount } from "@/lib/format";
import { ToneBadge } from "@/ui/tone";
import { stateOfAction } from "./states";
import { StepSlider } from "./step-slider";
import { TimeLeft } from "./time-left";

const STEPS = [0, 50, 100, 200, 500, 1000];

interface LoadSliderProps {
  load: LabLoad;
  disabled: boolean;
  onRate: (rate: number) => void;
}

/** The demo's transactions a second. */
export function LoadSlider({ load, disabled, onRate }: LoadSliderProps) {
  return (
    <Box>
      <StepSlider
        label="Load, in transactions a second"
        steps={STEPS}
        value={load.rate}
        also={[load.usual_rate, load.rate_max]}
        disabled={disabled}
        mark={formatCount}
        onValue={onRate}
      >
        {(shown) => (
          <Group justify="space-between" mb={6}>
            <Text size="sm">
              <strong>{formatCount(shown)}</strong> transactions a second
              {shown === load.usual_rate && (
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
        )}
      </StepSlider>
      {load.failure && (
        <Text size="sm" c="var(--tone-bad)">
          {load.failure}
        </Text>
      )}
    </Box>
  );
}
