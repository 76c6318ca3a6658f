import { describe, expect, it } from "vitest";
import type { StreamError } from "@/api/types";
import { destination, stream } from "@/test/data";
import { whatToDo } from "./what-to-do";

const error: StreamError = {
  code: "authentication_failed",
  class: "operator_action",
  side: "destination",
  title: "The database refuses the login",
  message: "password authentication failed",
  detail: null,
  cure: "Correct the password.",
  sqlstate: "28P01",
  table: null,
  lsn: null,
  xid: null,
  at: null,
};
const failed = (reason: string, values = {}) => stream({ health: { level: "error", reason }, ...values });
const at = (name: string, own: StreamError | null) =>
  destination({ id: name, database: { id: name, name, address: "" }, error: own });

describe("whatToDo", () => {
  it("has the cure of the stream's error", () => {
    const aborted = failed(`${error.title}: ${error.message}.`, { status: "ABORTED", error });
    expect(whatToDo(aborted)).toEqual({ cures: ["Correct the password."], more: false });
  });

  it("does not repeat what the reason says", () => {
    const cured = failed("It was dropped. Copy the table again.", {
      error: { ...error, cure: "Copy the table again." },
    });
    expect(whatToDo(cured)).toEqual({ cures: [], more: false });
  });

  it("names the destinations of each cause, and the trouble where the reason tells another", () => {
    const full = {
      ...error,
      code: "disk_full",
      title: "Its disk is full",
      message: "53100",
      cure: "Make room.",
    };
    const both = failed(`north and south have stopped. ${error.title}: ${error.message}. And 1 more.`, {
      destinations: [at("north", error), at("south", error), at("west", full), at("east", null)],
    });
    expect(whatToDo(both)).toEqual({
      cures: ["north and south: Correct the password.", "west: Its disk is full. Make room."],
      more: true,
    });
  });

  it("cuts a long cure after its first sentence", () => {
    const long = `Correct the password. ${"Then look at every line of pg_hba.conf. ".repeat(6)}`;
    const aborted = failed(`${error.title}.`, { error: { ...error, cure: long } });
    expect(whatToDo(aborted)).toEqual({ cures: ["Correct the password."], more: true });
  });

  it("says nothing of what an engine last said before it fell silent", () => {
    expect(whatToDo(failed("The engine: no answer.", { status: "UNKNOWN", error })).cures).toEqual([]);
  });

  it("says nothing of a stream that is well", () => {
    expect(whatToDo(stream())).toEqual({ cures: [], more: false });
  });
});
