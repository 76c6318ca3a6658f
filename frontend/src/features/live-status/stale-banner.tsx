import { useLiveState } from "@/api/live";
import { formatAgo } from "@/lib/format";
import { ProblemAlert } from "@/ui/problem-alert";
import { isStale } from "./stale";
import { useNow } from "./use-now";

interface StaleBannerProps {
  streams: (Parameters<typeof isStale>[0] & { name: string })[];
  /** False: the API says that its live bus is down. */
  live: boolean;
}

/** Shown above numbers that are no longer live, with the reason. */
export function StaleBanner({ streams, live }: StaleBannerProps) {
  const now = useNow(3000);
  const { state } = useLiveState();
  const stale = streams.filter((stream) => isStale(stream, now));
  if (live && state !== "lost" && stale.length === 0) return null;
  const newest = stale
    .flatMap((stream) => stream.sampled_at ?? stream.observed_at ?? [])
    .sort()
    .at(-1);
  const message = !live
    ? "Redis cannot be reached, so rates and latencies are missing. Replication does not depend on it."
    : state === "lost"
      ? "The connection to the control plane is interrupted. Replication does not depend on it."
      : `The last numbers of ${stale.map((stream) => stream.name).join(", ")} came ${formatAgo(newest, now)}.`;
  const cure = !live
    ? "Start Redis; live numbers come back by themselves."
    : state === "lost"
      ? "The console reconnects by itself. If it does not, check the control plane with `make status`."
      : "Check that the engine is online (Engines page) and that the control plane's collector is running.";
  return <ProblemAlert tone="warning" problem={{ title: "These numbers are stale", message, cure }} />;
}
