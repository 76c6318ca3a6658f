import { describe, expect, it } from "vitest";
import { destination, stream } from "@/test/data";
import { whySilent } from "./why-silent";

const to = (name: string) => destination({ id: name, database: { id: name, name, address: "localhost" } });

describe("whySilent", () => {
  it("names the destinations to resume", () => {
    const one = stream({ state: "PAUSED", destinations: [to("archive")] });
    expect(whySilent(one)).toBe("archive is paused. Resume it to get samples every second.");
    const two = stream({ state: "PAUSED", destinations: [to("archive"), to("reports")] });
    expect(whySilent(two)).toBe(
      "archive and reports are paused. Resume one of them to get samples every second.",
    );
  });
});
