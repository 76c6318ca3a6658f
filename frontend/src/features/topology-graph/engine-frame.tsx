import type { NodeProps } from "@xyflow/react";
import { stateInWords } from "@/lib/states";
import { ToneIcon } from "@/ui/tone";

/** Around the components of a stream that one of its two engines runs. One that does not answer says so. */
export function EngineFrameView({ data }: NodeProps) {
  const { label, state } = data as { label: string; state: string | null };
  const words = stateInWords(state);
  return (
    <div className="engine-frame" data-tone={words.tone}>
      Engine {label}
      {state !== "ONLINE" && (
        <span title={words.definition} style={{ color: `var(--tone-${words.tone})` }}>
          {" "}
          <ToneIcon tone={words.tone} size={12} /> {words.label}
        </span>
      )}
    </div>
  );
}
