import { screen } from "@testing-library/react";
import type { ReactNode } from "react";
import { expect, it, vi } from "vitest";
import { alert } from "@/test/alerts";
import { renderUi, stubApi } from "@/test/render";
import { StreamAlerts } from "./stream-alerts";

vi.mock("@/ui/anchor-link", () => ({ AnchorLink: ({ children }: { children: ReactNode }) => children }));

it("breaks a message whose names are longer than a phone is wide", async () => {
  const message = 'violates "order_line_items_with_a_long_name_product_id_and_region_code_fkey"';
  stubApi({ "GET /api/v1/alerts": { body: { items: [alert("1", { message })], next_cursor: null } } });
  renderUi(<StreamAlerts streamId="stream01" />);
  expect(await screen.findByText(/and_region_code_fkey/)).toHaveStyle({
    overflowWrap: "anywhere",
  });
});
