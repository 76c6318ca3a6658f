import { Stack, Tabs } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { sessionQuery } from "@/api/session";
import { AccessPolicy } from "@/features/identity/access-policy";
import { PasswordForm } from "@/features/identity/password-form";
import { SecondFactor } from "@/features/identity/second-factor";
import { Tokens } from "@/features/identity/tokens";
import { Users } from "@/features/identity/users";
import type { RestCallSpec } from "@/lib/curl";
import { covers } from "@/lib/session-role";
import { PageHeader } from "@/ui/page-header";
import { Panel } from "@/ui/panel";
import { RestCallButton } from "@/ui/rest-call";

const route = getRouteApi("/shell/settings");

/** REST calls that do what the tab's actions do. */
function restCalls(tab: string, userId: string): RestCallSpec[] {
  if (tab === "tokens") {
    return [
      { method: "GET", path: "/api/v1/tokens" },
      { method: "POST", path: "/api/v1/tokens", body: { name: "ci", role: "viewer", expires_in_days: 90 } },
      { method: "DELETE", path: "/api/v1/tokens/TOKEN_ID" },
    ];
  }
  if (tab === "users") {
    return [
      { method: "GET", path: "/api/v1/users" },
      { method: "POST", path: "/api/v1/users", body: { name: "NAME", role: "viewer", password: "********" } },
      {
        method: "PATCH",
        path: "/api/v1/users/USER_ID",
        headers: { "If-Match": "ETAG" },
        body: { role: "operator", enabled: true },
      },
      { method: "DELETE", path: "/api/v1/users/USER_ID" },
      { method: "POST", path: "/api/v1/users/USER_ID:reset-second-factor" },
      {
        method: "PATCH",
        path: "/api/v1/access-policy",
        headers: { "If-Match": "ETAG" },
        body: { require_second_factor: "admins" },
      },
    ];
  }
  const body = { current_password: "********", new_password: "********" };
  const own = `/api/v1/users/${userId}`;
  const proof = { current_password: "********", code: "CODE" };
  return [
    { method: "POST", path: `${own}:change-password`, body },
    { method: "GET", path: `${own}/second-factor` },
    { method: "POST", path: `${own}:prepare-second-factor`, body: { current_password: "********" } },
    { method: "POST", path: `${own}:confirm-second-factor`, body: { code: "CODE" } },
    { method: "POST", path: `${own}:renew-recovery-codes`, body: proof },
    { method: "POST", path: `${own}:remove-second-factor`, body: proof },
  ];
}

export function SettingsPage() {
  const { tab = "account" } = route.useSearch();
  const navigate = route.useNavigate();
  const user = useQuery(sessionQuery).data?.user;
  if (!user) return null;
  const isAdmin = covers(user.role, "admin");
  return (
    <>
      <PageHeader
        title="Settings"
        description="Your account, API tokens and users."
        actions={<RestCallButton label="REST calls" calls={restCalls(tab, user.id)} />}
      />
      <Tabs
        value={tab}
        onChange={(next) =>
          navigate({ search: { tab: next === "account" || next === null ? undefined : next }, replace: true })
        }
      >
        <Tabs.List mb="sm">
          <Tabs.Tab value="account">Account</Tabs.Tab>
          <Tabs.Tab value="tokens">API tokens</Tabs.Tab>
          {isAdmin && <Tabs.Tab value="users">Users</Tabs.Tab>}
        </Tabs.List>
        <Tabs.Panel value="account">
          <Stack maw={460}>
            <Panel title="Change password">
              <PasswordForm userId={user.id} needsCurrent />
            </Panel>
            <SecondFactor userId={user.id} />
          </Stack>
        </Tabs.Panel>
        <Tabs.Panel value="tokens">
          <Tokens role={user.role} />
        </Tabs.Panel>
        {isAdmin && (
          <Tabs.Panel value="users">
            <Stack>
              <Users selfId={user.id} />
              <AccessPolicy />
            </Stack>
          </Tabs.Panel>
        )}
      </Tabs>
    </>
  );
}
