import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import type { StreamWait } from "@/api/types";
import { stream } from "@/test/data";
import { renderUi } from "@/test/render";
import { StreamWaits } from "./stream-waits";

const wait: StreamWait = {
  side: "source",
  destination_id: null,
  database: "orders",
  statement: "CREATE_REPLICATION_SLOT thalweg_stream01 LOGICAL pgoutput",
  since: "2026-11-21T00:00:05Z",
  blockers: [{ pid: 4711, user: "bob", application_name: "psql", state: "idle in transaction", since: null }],
};

test("says what waits, where, and behind whom, with the statement that ends it", () => {
  renderUi(<StreamWaits stream={stream({ waits: [wait] })} />);
  const alert = screen.getByRole("alert");
  expect(alert).toHaveTextContent("Waits for other sessions at the source orders");
  expect(alert).toHaveTextContent("server process 4711 (psql of bob, idle in transaction)");
  expect(alert).toHaveTextContent("CREATE_REPLICATION_SLOT thalweg_stream01");
  expect(alert).toHaveTextContent("SELECT pg_terminate_backend(4711);");
});

test("a prepared transaction has no process to end, and who may not be seen is not named", () => {
  const blockers = [
    { pid: 0, user: null, application_name: null, state: null, since: null },
    { pid: 12, user: null, application_name: null, state: null, since: null },
  ];
  renderUi(<StreamWaits stream={stream({ waits: [{ ...wait, blockers }] })} />);
  expect(screen.getByRole("alert")).toHaveTextContent(
    "It waits for a prepared transaction (see pg_prepared_xacts there) and server process 12.",
  );
  expect(screen.getByRole("alert")).not.toHaveTextContent("pg_terminate_backend(0)");
});
