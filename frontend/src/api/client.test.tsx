import { describe, expect, it, vi } from "vitest";
import { stubApi } from "@/test/render";
import { allPages, client, setCsrfToken, setUnauthenticatedHandler, unwrap } from "./client";
import { ProblemError } from "./problem";

const problem = {
  type: "x",
  title: "Name taken",
  status: 409,
  detail: "d",
  instance: "/",
  code: "name_taken",
  errors: [],
};

describe("the client", () => {
  it("throws the API's problem", async () => {
    stubApi({ "GET /api/v1/overview": { status: 409, body: problem } });
    const error = await unwrap(client.GET("/api/v1/overview")).catch((thrown) => thrown);
    expect(error).toBeInstanceOf(ProblemError);
    expect(error.problem.code).toBe("name_taken");
  });

  it("says that the control plane cannot be reached, with a cure", async () => {
    vi.stubGlobal("fetch", async () => {
      throw new TypeError("Failed to fetch");
    });
    const error = await unwrap(client.GET("/api/v1/overview")).catch((thrown) => thrown);
    expect(error.problem).toMatchObject({ code: "control_plane_unreachable", status: 0 });
    expect(error.problem.cure).toBeTruthy();
  });

  it("understands that a proxy's answer is not the API's", async () => {
    vi.stubGlobal("fetch", async () => new Response("<html>502</html>", { status: 502 }));
    const error = await unwrap(client.GET("/api/v1/overview")).catch((thrown) => thrown);
    expect(error.problem).toMatchObject({ code: "unexpected_answer", status: 502 });
  });

  it("sends the CSRF token with changes only", async () => {
    const requests = stubApi({
      "GET /api/v1/overview": { body: {} },
      "POST /api/v1/streams/stream01:start": { body: {} },
    });
    setCsrfToken("token");
    await client.GET("/api/v1/overview");
    await client.POST("/api/v1/streams/{stream_id}:start", { params: { path: { stream_id: "stream01" } } });
    setCsrfToken(null);
    expect(requests.map((request) => request.headers.get("X-CSRF-Token"))).toEqual([null, "token"]);
  });

  it("tells when the session is over", async () => {
    const over = vi.fn();
    setUnauthenticatedHandler(over);
    stubApi({ "GET /api/v1/overview": { status: 401, body: { ...problem, status: 401 } } });
    await client.GET("/api/v1/overview");
    setUnauthenticatedHandler(() => {});
    expect(over).toHaveBeenCalledOnce();
  });

  it("reads all parts of a list", async () => {
    const parts = [
      { items: [1, 2], next_cursor: "c" },
      { items: [3], next_cursor: null },
    ];
    const asked: (string | undefined)[] = [];
    const items = await allPages(async (cursor) => {
      asked.push(cursor);
      return parts.shift() ?? { items: [], next_cursor: null };
    });
    expect(items).toEqual([1, 2, 3]);
    expect(asked).toEqual([undefined, "c"]);
  });
});
