// The one client. Nothing else in the console talks to the network but the event stream in live.ts.
import createClient, { type Middleware } from "openapi-fetch";
import type { paths } from "./generated/schema";
import { ProblemError, problemFromResponse, unreachableProblem } from "./problem";

let csrfToken: string | null = null;
let onUnauthenticated: () => void = () => {};
let onSecondFactorDemanded: () => void = () => {};

/** The session's token, sent with every change. The session cookie itself is HttpOnly. */
export function setCsrfToken(token: string | null): void {
  csrfToken = token;
}

/** Called when a request finds that the session is over. */
export function setUnauthenticatedHandler(handler: () => void): void {
  onUnauthenticated = handler;
}

/** Called when a request finds that the user must set up a second factor first. */
export function setSecondFactorDemandedHandler(handler: () => void): void {
  onSecondFactorDemanded = handler;
}

const session: Middleware = {
  onRequest({ request }) {
    if (csrfToken && request.method !== "GET") request.headers.set("X-CSRF-Token", csrfToken);
    return request;
  },
  onResponse({ response, schemaPath }) {
    if (response.status === 401 && !schemaPath.startsWith("/api/v1/session")) onUnauthenticated();
    return response;
  },
};

export const client = createClient<paths>({
  baseUrl: window.location.origin,
  credentials: "same-origin",
  // Looked up at each call, so that tests may replace it.
  fetch: (request) => globalThis.fetch(request),
});
client.use(session);

interface Answer<Data> {
  data?: Data;
  error?: unknown;
  response: Response;
}

/** The data of an answer; throws ProblemError for everything else. */
export async function unwrap<Data>(call: Promise<Answer<Data>>): Promise<Data> {
  let answer: Answer<Data>;
  try {
    answer = await call;
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ProblemError(unreachableProblem(window.location.origin));
  }
  const { data, error, response } = answer;
  if (!response.ok) {
    const path = response.url ? new URL(response.url).pathname : "";
    const problem = problemFromResponse(response.status, error, path);
    if (problem.code === "second_factor_demanded") onSecondFactorDemanded();
    throw new ProblemError(problem, response.headers.get("X-Request-ID"));
  }
  return data as Data;
}

interface Page<Item> {
  items: Item[];
  next_cursor: string | null;
}

/** All parts of a list that is small by nature (databases, engines, users). */
export async function allPages<Item>(
  part: (cursor: string | undefined) => Promise<Page<Item>>,
): Promise<Item[]> {
  const items: Item[] = [];
  let cursor: string | undefined;
  do {
    const page = await part(cursor);
    items.push(...page.items);
    cursor = page.next_cursor ?? undefined;
  } while (cursor);
  return items;
}

/** For requests that create something: sent again with the same key they give the first answer again. */
export function idempotencyKey(): { "Idempotency-Key": string } {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return { "Idempotency-Key": Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("") };
}
