import { Badge, Box, Stack, Tabs } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { alertCountsQuery } from "@/api/alerts";
import { sessionQuery } from "@/api/session";
import { AlertHistory } from "@/features/alerts/alert-history";
import { Channels } from "@/features/alerts/channels";
import { Deliveries } from "@/features/alerts/deliveries";
import { OpenAlerts } from "@/features/alerts/open-alerts";
import { Rules } from "@/features/alerts/rules";
import { Silences } from "@/features/alerts/silences";
import { covers } from "@/lib/session-role";
import { HelpLink } from "@/ui/help-link";
import { PageHeader } from "@/ui/page-header";
import { ProblemAlert } from "@/ui/problem-alert";
import { RestCallButton } from "@/ui/rest-call";

const route = getRouteApi("/shell/alerts");

const reads: Record<string, string> = {
  now: "/api/v1/alerts",
  history: "/api/v1/alerts?state=resolved",
  rules: "/api/v1/alerts/rules",
  channels: "/api/v1/alerts/channels",
  silences: "/api/v1/alerts/silences",
};

export function AlertsPage() {
  const { tab = "now" } = route.useSearch();
  const navigate = route.useNavigate();
  const role = useQuery(sessionQuery).data?.user.role;
  const counts = useQuery(alertCountsQuery).data;
  const mayAct = covers(role, "operator");
  return (
    <>
      <PageHeader
        title="Alerts"
        beside={<HelpLink help="guides/alerts" about="alerts" />}
        description="Alerts, the alert rules that raise them, and the channels that report them."
        actions={<RestCallButton calls={[{ method: "GET", path: reads[tab] ?? "/api/v1/alerts" }]} />}
      />
      {counts?.outdated && (
        <Box mb="sm">
          <ProblemAlert problem={{ title: "These are not the alerts of now", message: counts.outdated }} />
        </Box>
      )}
      <Tabs
        value={tab}
        keepMounted={false}
        onChange={(next) =>
          navigate({ search: { tab: next === "now" || next === null ? undefined : next }, replace: true })
        }
      >
        <Tabs.List mb="sm">
          <Tabs.Tab
            value="now"
            rightSection={counts && counts.firing > 0 ? <Badge size="sm">{counts.firing}</Badge> : null}
          >
            Firing
          </Tabs.Tab>
          <Tabs.Tab value="history">History</Tabs.Tab>
          <Tabs.Tab value="rules">Alert rules</Tabs.Tab>
          <Tabs.Tab value="channels">Channels</Tabs.Tab>
          <Tabs.Tab value="silences">Silences</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="now">
          <OpenAlerts mayAct={mayAct} />
        </Tabs.Panel>
        <Tabs.Panel value="history">
          <AlertHistory />
        </Tabs.Panel>
        <Tabs.Panel value="rules">
          <Rules mayAct={mayAct} />
        </Tabs.Panel>
        <Tabs.Panel value="channels">
          <Stack gap="sm">
            <Channels mayTest={mayAct} mayChange={covers(role, "admin")} />
            <Deliveries mayAct={mayAct} />
          </Stack>
        </Tabs.Panel>
        <Tabs.Panel value="silences">
          <Silences mayAct={mayAct} />
        </Tabs.Panel>
      </Tabs>
    </>
  );
}
