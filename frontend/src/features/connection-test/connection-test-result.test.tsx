import { screen, within } from "@testing-library/react";
import { expect, it } from "vitest";
import type { ConnectionTest } from "@/api/types";
import { renderUi } from "@/test/render";
import { ConnectionTestResult } from "./connection-test-result";

const worked: ConnectionTest = {
  reachable: true,
  latency_ms: 1,
  connect_ms: 5,
  version: "17.2",
  version_number: 170002,
  system_identifier: "7",
  role: null,
  tls: true,
  code: null,
  message: null,
  cure: null,
  sql: null,
  servers: [],
};
const seen = { system_identifier: "7", wal_level: "logical", message: null };

it("tells which server is the primary and which the standby", () => {
  renderUi(
    <ConnectionTestResult
      test={{
        ...worked,
        servers: [
          { ...seen, address: "db1:5432", role: "primary" },
          { ...seen, address: "db2:5432", role: "standby" },
        ],
      }}
    />,
  );
  const servers = within(screen.getByRole("list", { name: "Servers" })).getAllByRole("listitem");
  expect(servers.map((server) => server.textContent)).toEqual(["db1:5432: primary", "db2:5432: standby"]);
});

it("says nothing of servers where one address is one server", () => {
  renderUi(<ConnectionTestResult test={worked} />);
  expect(screen.queryByRole("list", { name: "Servers" })).toBeNull();
});

it("tells version, times and encryption of one that worked", () => {
  renderUi(<ConnectionTestResult test={worked} />);
  const told = screen.getByRole("status");
  expect(told).toHaveTextContent("Connected to PostgreSQL 17.2");
  expect(told).toHaveTextContent(/Round trip 1.ms, connected in 5.ms, encrypted\./);
});
