import { screen } from "@testing-library/react";
import type { ReactNode } from "react";
import { expect, it, vi } from "vitest";
import { alert } from "@/test/alerts";
import { destination, stream } from "@/test/data";
import { renderUi, stubApi } from "@/test/render";
import { StreamAlerts } from "./stream-alerts";

vi.mock("@/ui/anchor-link", () => ({ AnchorLink: ({ children }: { children: ReactNode }) => children }));

it("breaks a message whose names are longer than a phone is wide", async () => {
  const message = 'violates "order_line_items_with_a_long_name_product_id_and_region_code_fkey"';
  stubApi({ "GET /api/v1/alerts": { body: { items: [alert("1", { message })], next_cursor: null } } });
  renderUi(<StreamAlerts stream={stream()} />);
  expect(await screen.findByText(/and_region_code_fkey/)).toHaveStyle({
    overflowWrap: "anywhere",
  });
});

it("leaves out a database that is away where an error of the page tells it", async () => {
  const away = (id: string, name: string, title: string) =>
    alert(id, { rule: "database_unreachable", title, evidence: { side: "destination", database: name } });
  const items = [away("1", "north", "North is away"), away("2", "south", "South is away")];
  stubApi({ "GET /api/v1/alerts": { body: { items, next_cursor: null } } });
  const error = {
    code: "database_unreachable",
    class: "transient",
    side: "destination",
    title: "The database cannot be reached",
    message: "Refused.",
    detail: null,
    cure: null,
    sqlstate: null,
    table: null,
    lsn: null,
    xid: null,
    at: null,
  } as const;
  const at = (name: string) => destination({ id: name, database: { id: name, name, address: "" } });
  renderUi(<StreamAlerts stream={stream({ destinations: [{ ...at("north"), error }, at("south")] })} />);
  expect(await screen.findByText(/South is away/)).toBeVisible();
  expect(screen.queryByText(/North is away/)).toBeNull();
});
