import { expect, it } from "vitest";
import { addressOf, serversOf } from "./address";

it.each([
  ["db1", "db1:5432"],
  ["::1", "[::1]:5432"],
  ["[::1]", "[::1]:5432"],
  ["db1, db2:5433", "db1:5432,db2:5433"],
  ["localhost:1,[::1]:59433,localhost:59433", "localhost:1,[::1]:59433,localhost:59433"],
  ["/run/postgresql", "/run/postgresql:5432"],
])("shows the hosts of %s with a port each", (host, servers) => {
  expect(serversOf({ host, port: 5432 })).toBe(servers);
});

it("ends with the database", () => {
  expect(addressOf({ host: "db1:1,db2", port: 5433, dbname: "shop" })).toBe("db1:1,db2:5433/shop");
});
