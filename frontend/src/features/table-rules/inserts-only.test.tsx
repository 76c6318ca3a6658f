import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { describe, expect, it, vi } from "vitest";
import type { SourceTable, TableRules } from "@/api/types";
import { keylessTable as log, stream } from "@/test/data";
import { expectNoAxeViolations, renderUi, stubApi } from "@/test/render";
import { InsertsOnly } from "./inserts-only";
import { StreamRules } from "./stream-rules";

const orders: SourceTable = { ...log, table: "orders", identified: true, replicable: true, unsupported: [] };
const all: TableRules = { include: [{ schema: "public", table: "*" }], exclude: [] };
const given = { ...all, inserts_only: [{ schema: "public", table: "log" }] };

function Choice({ told }: { told: (rules: TableRules) => void }) {
  const [rules, setRules] = useState(all);
  const change = (next: TableRules) => {
    told(next);
    setRules(next);
  };
  return <InsertsOnly tables={[log, orders]} rules={rules} onChange={change} />;
}

describe("InsertsOnly", () => {
  it("asks for each table without a key, and says what is given up", async () => {
    const told = vi.fn();
    renderUi(<Choice told={told} />);
    expect(screen.getByText(/rows that the source has changed or deleted/)).toBeVisible();
    expect(screen.getAllByRole("checkbox")).toHaveLength(1);
    const box = screen.getByRole("checkbox", { name: "Give up updates and deletes of public.log" });
    expect(box).not.toBeChecked();
    await userEvent.click(box);
    expect(told).toHaveBeenLastCalledWith(given);
    expect(box).toBeChecked();
    await userEvent.click(box);
    expect(told).toHaveBeenLastCalledWith({ ...all, inserts_only: [] });
    await expectNoAxeViolations();
  });

  it("is silent where every table has a key", () => {
    renderUi(<InsertsOnly tables={[orders]} rules={all} onChange={() => {}} />);
    expect(screen.queryByText("Inserts only")).toBeNull();
  });
});

describe("StreamRules", () => {
  it("asks for another copy before updates come again", async () => {
    let sent: unknown = null;
    const table = {
      ...log,
      identified: true,
      replicable: true,
      unsupported: [],
      replica_identity: "full" as const,
    };
    stubApi({
      "POST /api/v1/streams:preview-tables": {
        body: { tables: [table], replicable: 1, bytes: 0, rows_estimated: 0, unmatched: [] },
      },
      "PATCH /api/v1/streams/stream01": async (request) => {
        sent = await request.json();
        return { body: stream() };
      },
    });
    const tables = stream().tables.map((one) => ({ ...one, table: "log", inserts_only: true }));
    renderUi(<StreamRules stream={stream({ rules: given, tables })} mayAct />);
    expect(screen.getByText("Inserts only")).toBeVisible();
    await userEvent.click(screen.getByRole("button", { name: "Edit rules" }));
    await userEvent.click(
      await screen.findByRole("checkbox", { name: "Give up updates and deletes of public.log" }),
    );
    const consent = await screen.findByRole("checkbox", {
      name: /updates and deletes of public.log again: the stream stops there until you copy/,
    });
    expect(screen.getByRole("button", { name: "Save rules" })).toBeDisabled();
    await userEvent.click(consent);
    await vi.waitFor(() => expect(screen.getByRole("button", { name: "Save rules" })).toBeEnabled());
    await userEvent.click(screen.getByRole("button", { name: "Save rules" }));
    await vi.waitFor(() => expect(sent).toEqual({ rules: all, accept: ["updates_again"] }));
  });
});
