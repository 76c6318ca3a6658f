import type { NodeProps } from "@xyflow/react";

/** Around the components of a stream that one of its two engines runs. */
export function EngineFrameView({ data }: NodeProps) {
  return <div className="engine-frame">Engine {(data as { label: string }).label}</div>;
}
