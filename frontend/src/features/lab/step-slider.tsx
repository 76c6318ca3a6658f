import { Box, Slider } from "@mantine/core";
import { type ReactNode, useState } from "react";

interface StepSliderProps {
  label: string;
  steps: readonly number[];
  value: number;
  /** Further steps where they are not among the others; the last one is the highest. */
  also: readonly [number, number];
  disabled: boolean;
  mark: (step: number) => string;
  onValue: (value: number) => void;
  /** Content above the slider, for the step under the thumb. */
  children: (shown: number) => ReactNode;
}

/** A number in steps; onValue is called when the thumb is let go. */
export function StepSlider({
  label,
  steps: usual,
  value,
  also,
  disabled,
  mark,
  onValue,
  children,
}: StepSliderProps) {
  const [chosen, setChosen] = useState<number | null>(null);
  const steps = [...new Set([...usual, value, ...also])]
    .filter((step) => step <= also[1])
    .sort((a, b) => a - b);
  const place = chosen ?? steps.indexOf(value);
  return (
    <>
      {children(steps[place] ?? value)}
      <Box px={8} pb={24}>
        <Slider
          thumbLabel={label}
          disabled={disabled}
          label={null}
          min={0}
          max={steps.length - 1}
          step={1}
          value={place}
          onChange={setChosen}
          onChangeEnd={(at) => {
            setChosen(null);
            const wanted = steps[at];
            if (wanted !== undefined && wanted !== value) onValue(wanted);
          }}
          marks={steps.map((step, at) => ({ value: at, label: mark(step) }))}
          styles={{ markLabel: { fontSize: 11 } }}
        />
      </Box>
    </>
  );
}
