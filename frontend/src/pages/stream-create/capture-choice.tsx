import { Radio, Stack } from "@mantine/core";
import type { CaptureKind } from "@/api/types";

interface CaptureChoiceProps {
  value: CaptureKind;
  onChange: (kind: CaptureKind) => void;
}

/** The choice between decoding and mining. */
export function CaptureChoice({ value, onChange }: CaptureChoiceProps) {
  return (
    <Radio.Group
      label="How changes are captured"
      description="It can be changed later, without a new copy."
      value={value}
      onChange={(chosen) => onChange(chosen as CaptureKind)}
    >
      <Stack gap={6} mt={8}>
        <Radio
          value="logical"
          label="Logical decoding"
          description="The source decodes its WAL, for all types and tables. It spends processor time for each stream, and keeps WAL for as long as a destination is behind."
        />
        <Radio
          value="wal"
          label="Log mining"
          description="The engine receives the whole WAL, stages it on its own disk and mines it there; the source can forget WAL as soon as it is staged. Needs full_page_writes = on, a primary, a database in UTF8, tables that are not partitioned, and room on the engine's disk. Types without a binary form, and those of most extensions, cannot be mined."
        />
      </Stack>
    </Radio.Group>
  );
}
