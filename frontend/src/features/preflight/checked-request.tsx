import type { RestCallSpec } from "@/lib/curl";
import { RestCall } from "@/ui/rest-call";
import { AcceptedChecks } from "./accepted-checks";
import { Refusal } from "./refusal";
import type { GivenConsents } from "./use-consents";

interface CheckedRequestProps {
  /** Of the last try; null where there was none, or none since something was changed. */
  error: unknown;
  consents: GivenConsents;
  /** Names by ids, of those that checks can be about. */
  databases: Record<string, string>;
  call: RestCallSpec;
}

/** A request that is checked first: why it was refused, or else what is accepted of it; and its REST call. */
export function CheckedRequest({ error, consents, databases, call }: CheckedRequestProps) {
  return (
    <>
      {error ? (
        <Refusal error={error} databases={databases} consents={consents} />
      ) : (
        <AcceptedChecks checks={consents.seen} accepted={consents.accepted} />
      )}
      <RestCall call={call} />
    </>
  );
}
