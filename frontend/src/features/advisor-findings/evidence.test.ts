import { expect, it } from "vitest";
import { coloursOf } from "@/lib/series-colours";
import { finding } from "@/test/advisor";
import { evidenceLines } from "./evidence";

const [known] = finding.evidence;
const of = (subject: string, statistic: string) =>
  ({ ...known, subject, statistic }) as NonNullable<typeof known>;

it("draws a thread in its colour of all charts, and its second figure in dashes", () => {
  const lines = evidenceLines([
    of("warehouse:server-2", "IDLE"),
    of("shipment", "IDLE"),
    of("shipment", "FLOW CONTROL"),
    of("shipment", "DISK"),
  ]);
  const [applier, shipment] = coloursOf([{ label: "Applier 2" }, { label: "WAL shipment" }]);
  expect(lines.map(({ label }) => label)).toEqual([
    "Applier 2, idle",
    "WAL shipment, idle",
    "WAL shipment, flow control",
    "WAL shipment, disk",
  ]);
  expect(lines.slice(0, 3).map(({ colour }) => colour)).toEqual([applier, shipment, shipment]);
  expect(lines.map(({ isDashed }) => isDashed)).toEqual([false, false, true, false]);
  expect([applier, shipment]).not.toContain(lines[3]?.colour);
});
