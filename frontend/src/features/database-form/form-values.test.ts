import { describe, expect, it } from "vitest";
import { database } from "@/test/data";
import { emptyForm, formFaults, toCreate, toFormValues, toTest, toUpdate } from "./form-values";

const known = database("source01", "orders");

describe("the database form", () => {
  it("names what is missing", () => {
    expect(Object.keys(formFaults(emptyForm, null)).sort()).toEqual(["dbname", "host", "name", "user"]);
    expect(formFaults({ ...toFormValues(known), port: 70000, password: "p" }, known)).toEqual({
      port: "Enter a number from 1 to 65535.",
    });
    expect(formFaults(toFormValues(known), known)).toEqual({});
  });

  it("sends only what changed and never an empty password", () => {
    const values = toFormValues(known);
    expect(toUpdate(values, known)).toEqual({});
    expect(toUpdate({ ...values, port: 5433, password: "new" }, known)).toEqual({
      port: 5433,
      password: "new",
    });
  });

  it("asks for the password again where it would be sent elsewhere", () => {
    const values = toFormValues(known);
    for (const change of [{ host: "other" }, { user: "other" }, { sslmode: "disable" as const }]) {
      expect(formFaults({ ...values, ...change }, known).password).toMatch(/again/);
      expect(formFaults({ ...values, ...change, password: "p" }, known).password).toBeUndefined();
    }
    expect(formFaults({ ...values, sslmode: "verify-full", name: "renamed" }, known)).toEqual({});
  });

  it("sends certificates as contents, and removes them when asked", () => {
    const values = toFormValues(known);
    expect(formFaults({ ...values, sslcert: "/etc/cert.pem" }, known).sslcert).toMatch(/PEM/);
    const pem = "-----BEGIN CERTIFICATE-----";
    expect(toUpdate({ ...values, sslcert: pem, sslkey: null }, known)).toEqual({ sslcert: pem, sslkey: "" });
    expect(toTest({ ...values, sslcert: pem }, known)).toMatchObject({ sslcert: pem });
  });

  it("tests with the stored password when none is typed", () => {
    expect(toTest(toFormValues(known), known)).toMatchObject({ password: "", database_id: "source01" });
    expect(toTest({ ...emptyForm, host: " h " }, null)).toMatchObject({ host: "h", database_id: null });
  });

  it("reads from a standby only where both servers are named", () => {
    const values = { ...toFormValues(known), read_from: "standby" as const, password: "p" };
    expect(formFaults(values, known).host).toMatch(/both servers/);
    expect(formFaults({ ...values, host: "db1,db2" }, known)).toEqual({});
    expect(toUpdate({ ...values, password: "" }, known)).toEqual({ read_from: "standby" });
    expect(toCreate(values).read_from).toBe("standby");
  });

  it("creates with numbers as numbers", () => {
    expect(toCreate({ ...toFormValues(known), port: "5433" }).port).toBe(5433);
  });
});
