import { MantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { createMemoryHistory, RouterProvider } from "@tanstack/react-router";
import { render } from "@testing-library/react";
import axe from "axe-core";
import type { ReactNode } from "react";
import { expect, vi } from "vitest";
import { createAppRouter } from "@/app/router";
import { cssVariables, theme } from "@/app/theme";

function testClient(): QueryClient {
  return new QueryClient({ defaultOptions: { queries: { retry: false }, mutations: { retry: false } } });
}

export function renderUi(ui: ReactNode) {
  return render(
    <MantineProvider theme={theme} cssVariablesResolver={cssVariables} env="test">
      <QueryClientProvider client={testClient()}>{ui}</QueryClientProvider>
    </MantineProvider>,
  );
}

/** The whole console at an address, as a user would open it. */
export function renderAt(path: string) {
  const client = testClient();
  const history = createMemoryHistory({ initialEntries: [path] });
  const router = createAppRouter(client, history);
  render(
    <MantineProvider theme={theme} cssVariablesResolver={cssVariables} env="test">
      <QueryClientProvider client={client}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </MantineProvider>,
  );
  return { client, history };
}

type Answer = { status?: number; body?: unknown };
export type Routes = Record<string, Answer | ((request: Request) => Answer | Promise<Answer>)>;

/** Answers the network's requests by "METHOD /path"; what is not listed fails the test by its message. */
export function stubApi(routes: Routes): Request[] {
  const requests: Request[] = [];
  vi.stubGlobal("fetch", async (request: Request) => {
    requests.push(request.clone());
    const { pathname } = new URL(request.url);
    const route = routes[`${request.method} ${pathname}`];
    if (!route) throw new TypeError(`No answer for ${request.method} ${pathname}`);
    const { status = 200, body } = typeof route === "function" ? await route(request) : route;
    const type = status >= 400 ? "application/problem+json" : "application/json";
    return new Response(body === undefined ? null : JSON.stringify(body), {
      status,
      headers: { "Content-Type": type },
    });
  });
  return requests;
}

/** An event stream under the test's control. */
export class EventSourceStub extends EventTarget {
  static latest: EventSourceStub | null = null;
  static readonly CLOSED = 2;
  readyState = 1;
  onopen: (() => void) | null = null;
  onerror: (() => void) | null = null;

  constructor() {
    super();
    EventSourceStub.latest = this;
  }

  close() {
    this.readyState = EventSourceStub.CLOSED;
  }

  emit(name: string, data: unknown) {
    this.dispatchEvent(new MessageEvent(name, { data: JSON.stringify(data) }));
  }
}

export function stubEvents(): void {
  EventSourceStub.latest = null;
  vi.stubGlobal("EventSource", EventSourceStub);
}

/** Colours cannot be judged without a layout: the contrast is checked in a real browser. */
export async function expectNoAxeViolations(element: Element = document.body): Promise<void> {
  const { violations } = await axe.run(element, {
    rules: { "color-contrast": { enabled: false }, region: { enabled: false } },
  });
  expect(violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" ")}`)).toEqual([]);
}
