import { screen } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import type { StreamError } from "@/api/types";
import { destination, stream } from "@/test/data";
import { expectNoAxeViolations, renderUi } from "@/test/render";
import { DestinationErrors } from "./destination-errors";

const unreachable = (name: string, values: Partial<StreamError> = {}): StreamError => ({
  code: "database_unreachable",
  class: "transient",
  side: "destination",
  title: "The database cannot be reached",
  message: `Destination "${name}": connection refused.`,
  detail: null,
  cure: "Check that the server runs.",
  sqlstate: null,
  table: null,
  lsn: null,
  xid: null,
  at: null,
  ...values,
});
const at = (name: string, error: StreamError | null) =>
  destination({ id: name, database: { id: name, name, address: "" }, error });

describe("DestinationErrors", () => {
  it("tells a cause once, with the destinations and what each of them says", async () => {
    const destinations = ["north", "south"].map((name) => at(name, unreachable(name)));
    renderUi(<DestinationErrors stream={stream({ destinations: [...destinations, at("west", null)] })} />);
    const alert = screen.getByRole("alert");
    expect(alert).toHaveTextContent("north and south: The database cannot be reached");
    expect(screen.getAllByRole("listitem").map(({ textContent }) => textContent)).toEqual([
      'Destination "north": connection refused.',
      'Destination "south": connection refused.',
    ]);
    expect(alert.textContent?.match(/Cure: /g)).toHaveLength(1);
    await expectNoAxeViolations();
  });

  it("tells what one destination alone has, and leaves the stream's error to its panel", () => {
    const one = stream({ destinations: [at("north", unreachable("north")), at("south", null)] });
    const { unmount } = renderUi(
      <DestinationErrors
        stream={one}
        actions={({ code }, where) => `${code} at ${where.map(({ id }) => id).join()}`}
      />,
    );
    expect(screen.getByRole("alert")).toHaveTextContent("north: The database cannot be reached");
    expect(screen.getByRole("alert")).toHaveTextContent("database_unreachable at north");
    unmount();
    const both = ["north", "south"].map((name) => at(name, unreachable(name)));
    renderUi(<DestinationErrors stream={stream({ error: unreachable("north"), destinations: both })} />);
    expect(screen.queryByRole("alert")).toBeNull();
  });

  it("keeps different causes apart", () => {
    const full = { code: "disk_full", title: "Its disk is full", cure: "Make room." };
    renderUi(
      <DestinationErrors
        stream={stream({
          destinations: [
            at("north", unreachable("north")),
            at("south", unreachable("south", full)),
            at("east", unreachable("east")),
            at("west", unreachable("west", full)),
          ],
        })}
      />,
    );
    expect(screen.getAllByRole("alert").map(({ textContent }) => textContent?.split(":")[0])).toEqual([
      "north and east",
      "south and west",
    ]);
  });
});
