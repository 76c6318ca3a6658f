import { formatAgo } from "@/lib/format";
import { STALE_AFTER_MS } from "./stale";
import { useNow } from "./use-now";

interface ReadAgeProps {
  /** When it was read, in milliseconds. */
  at: number;
  /** `age` is null as long as it is of now. */
  children: (age: string | null) => string | null;
}

/** Says how old the health of streams is: samples amend what was read, and make it no newer. */
export function ReadAge({ at, children }: ReadAgeProps) {
  const now = useNow(1000);
  return children(now - at > STALE_AFTER_MS ? formatAgo(new Date(at).toISOString(), now) : null);
}
