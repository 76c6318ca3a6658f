import type { Stream } from "@/api/types";
import { causesOf } from "@/lib/causes";
import { listed } from "@/lib/sentences";
import { ProblemAlert } from "@/ui/problem-alert";
import { toldAbove } from "./told-above";

/** Errors of one cause at several destinations, each cause once; their heads refer to it. */
export function SharedErrors({ stream }: { stream: Stream }) {
  const failing = stream.destinations.filter((destination) => toldAbove(stream, destination) === "shared");
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
      />
    );
  });
}

/** The engine names the destination in most messages itself. */
function partOf(name: string, message: string): { message: string } {
  return { message: message.includes(name) ? message : `${name}: ${message}` };
}
