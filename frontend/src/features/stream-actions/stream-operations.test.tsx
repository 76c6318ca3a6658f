import { screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { operation, stream } from "@/test/data";
import { renderUi, stubApi } from "@/test/render";
import { StreamOperations } from "./stream-operations";

const refused = (finished: number) =>
  operation({
    kind: "stream.retry",
    state: "failed",
    error: {
      code: "table_trouble",
      title: "A table was replaced",
      message: "public.t_7",
      cure: "Copy it again.",
    },
    finished_at: new Date(finished).toISOString(),
  });

it("shows what came of the last thing that was asked for, for a while", async () => {
  stubApi({ "GET /api/v1/operations": { body: { items: [refused(Date.now())], next_cursor: null } } });
  renderUi(<StreamOperations stream={stream()} />);
  expect(await screen.findByText("Retry stream failed: A table was replaced")).toBeVisible();
  expect(screen.getByText(/Copy it again/)).toBeVisible();
});
