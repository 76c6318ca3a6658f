import type { QueryClient } from "@tanstack/react-query";
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
  type RouterHistory,
} from "@tanstack/react-router";
import { LoginPage } from "@/pages/login/login-page";
import { NotFoundPage } from "@/pages/not-found/not-found-page";
import { OverviewPage } from "@/pages/overview/overview-page";
import type { HistorySearch } from "@/pages/stream/stream-history";
import { PageError } from "./page-error";
import { textParam } from "./search-params";
import { GuardedShell } from "./shell";

const root = createRootRouteWithContext<{ queryClient: QueryClient }>()({
  component: Outlet,
  errorComponent: PageError,
});

const login = createRoute({
  getParentRoute: () => root,
  path: "/login",
  component: LoginPage,
  validateSearch: (search): { next?: string } => ({ next: textParam(search.next) }),
});

const shell = createRoute({ getParentRoute: () => root, id: "shell", component: GuardedShell });

const overview = createRoute({ getParentRoute: () => shell, path: "/", component: OverviewPage });

const streamCreate = createRoute({
  getParentRoute: () => shell,
  path: "/streams/new",
  component: lazyRouteComponent(() => import("@/pages/stream-create/stream-create-page"), "StreamCreatePage"),
});

const stream = createRoute({
  getParentRoute: () => shell,
  path: "/streams/$streamId",
  component: lazyRouteComponent(() => import("@/pages/stream/stream-page"), "StreamPage"),
  validateSearch: (
    search,
  ): {
    tab?: string;
    minutes?: number;
    judged?: number;
    filter?: string;
    destination?: string;
    cause?: string;
  } & HistorySearch => ({
    tab: textParam(search.tab),
    destination: textParam(search.destination),
    minutes: Number(search.minutes) || undefined,
    judged: Number(search.judged) || undefined,
    filter: textParam(search.filter),
    cause: textParam(search.cause),
    seconds: Number(search.seconds) || undefined,
    from: Number(search.from) || undefined,
    until: Number(search.until) || undefined,
    begin: Number(search.begin) || undefined,
    end: Number(search.end) || undefined,
  }),
});

const alerts = createRoute({
  getParentRoute: () => shell,
  path: "/alerts",
  component: lazyRouteComponent(() => import("@/pages/alerts/alerts-page"), "AlertsPage"),
  validateSearch: (search): { tab?: string } => ({ tab: textParam(search.tab) }),
});

const databases = createRoute({
  getParentRoute: () => shell,
  path: "/databases",
  component: lazyRouteComponent(() => import("@/pages/databases/databases-page"), "DatabasesPage"),
});

const database = createRoute({
  getParentRoute: () => shell,
  path: "/databases/$databaseId",
  component: lazyRouteComponent(() => import("@/pages/databases/database-page"), "DatabasePage"),
  validateSearch: (search): { role?: "source" | "destination" } => ({
    role: search.role === "source" || search.role === "destination" ? search.role : undefined,
  }),
});

const changes = createRoute({
  getParentRoute: () => shell,
  path: "/databases/$databaseId/changes",
  component: lazyRouteComponent(() => import("@/pages/changes/changes-page"), "ChangesPage"),
  validateSearch: (search): { search?: string; table?: string } => ({
    search: textParam(search.search),
    table: textParam(search.table),
  }),
});

const slots = createRoute({
  getParentRoute: () => shell,
  path: "/slots",
  component: lazyRouteComponent(() => import("@/pages/slots/slots-page"), "SlotsPage"),
});

const lab = createRoute({
  getParentRoute: () => shell,
  path: "/lab",
  component: lazyRouteComponent(() => import("@/pages/lab/lab-page"), "LabPage"),
});

const topology = createRoute({
  getParentRoute: () => shell,
  path: "/topology",
  component: lazyRouteComponent(() => import("@/pages/topology/topology-page"), "TopologyPage"),
});

const advisor = createRoute({
  getParentRoute: () => shell,
  path: "/advisor",
  component: lazyRouteComponent(() => import("@/pages/advisor/advisor-page"), "AdvisorPage"),
  validateSearch: (search): { tab?: string; stream?: string; reason?: string } => ({
    tab: textParam(search.tab),
    stream: textParam(search.stream),
    reason: textParam(search.reason),
  }),
});

const advisorRun = createRoute({
  getParentRoute: () => shell,
  path: "/advisor/runs/$runId",
  component: lazyRouteComponent(() => import("@/pages/advisor/run-page"), "RunPage"),
  validateSearch: (search): { path?: string } => ({ path: textParam(search.path) }),
});

const advisorCompare = createRoute({
  getParentRoute: () => shell,
  path: "/advisor/compare",
  component: lazyRouteComponent(() => import("@/pages/advisor/compare-page"), "ComparePage"),
  validateSearch: (search): { before?: number; after?: number } => ({
    before: Number(search.before) || undefined,
    after: Number(search.after) || undefined,
  }),
});

const operations = createRoute({
  getParentRoute: () => shell,
  path: "/operations",
  validateSearch: (search): { stream?: string; destination?: string; state?: string } => ({
    stream: textParam(search.stream),
    destination: textParam(search.destination),
    state: textParam(search.state),
  }),
  component: lazyRouteComponent(() => import("@/pages/operations/operations-page"), "OperationsPage"),
});
const engines = createRoute({
  getParentRoute: () => shell,
  path: "/engines",
  component: lazyRouteComponent(() => import("@/pages/engines/engines-page"), "EnginesPage"),
});
const audit = createRoute({
  getParentRoute: () => shell,
  path: "/audit",
  component: lazyRouteComponent(() => import("@/pages/audit/audit-page"), "AuditPage"),
});

const settings = createRoute({
  getParentRoute: () => shell,
  path: "/settings",
  component: lazyRouteComponent(() => import("@/pages/settings/settings-page"), "SettingsPage"),
  validateSearch: (search): { tab?: string } => ({ tab: textParam(search.tab) }),
});

/** Every other address, so that a page that does not exist has the navigation beside it. */
const notFound = createRoute({ getParentRoute: () => shell, path: "$", component: NotFoundPage });

const routeTree = root.addChildren([
  login,
  shell.addChildren([
    overview,
    streamCreate,
    stream,
    alerts,
    databases,
    database,
    changes,
    slots,
    lab,
    topology,
    advisor,
    advisorRun,
    advisorCompare,
    operations,
    engines,
    audit,
    settings,
    notFound,
  ]),
]);

export function createAppRouter(queryClient: QueryClient, history?: RouterHistory) {
  return createRouter({ routeTree, context: { queryClient }, history, defaultPreload: "intent" });
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof createAppRouter>;
  }
}
