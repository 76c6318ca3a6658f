import { describe, expect, it } from "vitest";
import { fieldsOfUri, isUri } from "./uri";

describe("a connection URI", () => {
  it("becomes the form's fields", () => {
    expect(fieldsOfUri("postgresql://me:se%40cret@db.example.com:5433/shop?sslmode=require")).toEqual({
      host: "db.example.com",
      port: 5433,
      user: "me",
      password: "se@cret",
      dbname: "shop",
      sslmode: "require",
    });
    expect(fieldsOfUri("postgres://me@[::1]/shop")).toEqual({
      host: "[::1]",
      port: 5432,
      user: "me",
      dbname: "shop",
    });
  });

  it("keeps several hosts with their ports, and other options", () => {
    expect(fieldsOfUri("postgres://me@a:1,b:2/shop?target_session_attrs=read-write")).toEqual({
      host: "a:1,b:2",
      port: 5432,
      user: "me",
      dbname: "shop",
      options: { target_session_attrs: "read-write" },
    });
  });

  it("is left alone where it is none", () => {
    expect(isUri("db.example.com")).toBe(false);
    expect(fieldsOfUri("postgresql://me@h/%zz")).toBeNull();
  });
});
