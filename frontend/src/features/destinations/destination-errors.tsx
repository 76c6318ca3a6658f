import type { ReactNode } from "react";
import type { Stream, StreamError } from "@/api/types";
import { causesOf } from "@/lib/causes";
import { listed } from "@/lib/sentences";
import { ProblemAlert } from "@/ui/problem-alert";
import { errorPlace } from "./error-place";

interface DestinationErrorsProps {
  stream: Stream;
  /** Buttons that carry out an error's cure at these destinations. */
  actions?: (error: StreamError, at: { id: string; name: string }[]) => ReactNode;
}

/** Errors of destinations, each cause once; their heads refer to it. */
export function DestinationErrors({ stream, actions }: DestinationErrorsProps) {
  const failing = stream.destinations.filter((destination) => errorPlace(stream, destination) === "alert");
  return causesOf(failing).map(({ error, at }) => {
    const messages = new Set(at.map((own) => own.error.detail ?? own.error.message));
    const parts = at.map((own) => partOf(own.name, own.error.detail ?? own.error.message));
    return (
      <ProblemAlert
        key={at.map(({ id }) => id).join()}
        tone={error.class === "transient" ? "warning" : "bad"}
        problem={{
          title: `${listed(at.map(({ name }) => name))}: ${error.title}`,
          message: messages.size === 1 ? [...messages].join() : null,
          parts: messages.size === 1 ? [] : parts,
          cure: error.cure,
          code: error.code,
        }}
        actions={actions?.(error, at)}
      />
    );
  });
}

/** The engine names the destination in most messages itself. */
function partOf(name: string, message: string): { message: string } {
  return { message: message.includes(name) ? message : `${name}: ${message}` };
}
