import type { Stream } from "@/api/types";

/** Why a stream has no live samples: what stands in the way, and what brings them. */
export function whySilent(stream: Stream): string {
  const { status, desired_status, phase, state, error, capture_engine, destinations, health, observed_at } =
    stream;
  if (capture_engine.state !== "ONLINE")
    return `Engine ${capture_engine.name} does not answer, and it takes the samples. They resume when it answers again.`;
  if (status === "UNKNOWN" && observed_at !== null)
    return `${health.reason} Samples resume when its engine reports again.`;
  if (error) return "The stream has failed. Cure the error above; samples resume when the stream starts.";
  if (state === "PAUSED") return `${paused(destinations)} to get samples every second.`;
  if (desired_status === "DISABLED" || status === "DISABLED")
    return "The stream is stopped. Start it to get samples every second.";
  if (phase === "INSTANTIATING")
    return "The initial copy is running; samples begin with the first changes after it.";
  return "Samples begin as soon as the engine runs the stream, a second or two after its start.";
}

function paused(destinations: Stream["destinations"]): string {
  const names = destinations.map(({ database }) => database.name);
  if (names.length === 1) return `${names[0]} is paused. Resume it`;
  return `${names.slice(0, -1).join(", ")} and ${names.at(-1)} are paused. Resume one of them`;
}
