import type { Stream } from "@/api/types";

/** Why a stream has no live samples: what stands in the way, and what brings them. */
export function whySilent({ status, desired_status, phase, error, capture_engine }: Stream): string {
  if (capture_engine.state !== "ONLINE")
    return `Engine ${capture_engine.name} does not answer: it is what measures. Samples come back with it.`;
  if (error) return `The stream has failed: ${error.title}. Cure it above; samples come with its start.`;
  if (desired_status === "DISABLED" || status === "DISABLED")
    return "The stream is stopped. Start it, and samples come every second.";
  if (phase === "INSTANTIATING")
    return "The initial copy runs; samples come with the first changes after it.";
  return "They come as soon as the engine runs the stream, a second or two after its start.";
}
