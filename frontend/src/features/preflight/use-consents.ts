import { useState } from "react";
import type { Check } from "@/api/types";
import { isAccepted, refusedChecks } from "./checks";

/** The consents of a user to the checks in the way of one request, over all its tries. */
export function useConsents() {
  const [accepted, setAccepted] = useState<string[]>([]);
  const [seen, setSeen] = useState<Check[]>([]);
  return {
    accepted,
    seen,
    onChange: setAccepted,
    /** Of the request's body; empty as long as nothing is accepted. */
    member: accepted.length > 0 ? { accept: accepted } : {},
    /** Keeps the checks of a refusal, so that the accepted ones can be shown in the next try. */
    keep: (error: unknown) => setSeen((known) => [...known, ...refusedChecks(error)]),
    /** Whether nothing of a refusal stands in the way of another try. Null: nothing was refused. */
    cover: (error: unknown) => isAccepted(refusedChecks(error), accepted),
  };
}

export type GivenConsents = ReturnType<typeof useConsents>;
