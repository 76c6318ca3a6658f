import { Stack, Tabs } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { sessionQuery } from "@/api/session";
import { PasswordForm } from "@/features/identity/password-form";
import { Tokens } from "@/features/identity/tokens";
import { Users } from "@/features/identity/users";
import { covers } from "@/lib/session-role";
import { PageHeader } from "@/ui/page-header";
import { Panel } from "@/ui/panel";

const route = getRouteApi("/shell/settings");

export function SettingsPage() {
  const { tab = "account" } = route.useSearch();
  const navigate = route.useNavigate();
  const user = useQuery(sessionQuery).data?.user;
  if (!user) return null;
  const isAdmin = covers(user.role, "admin");
  return (
    <>
      <PageHeader title="Settings" description="Your account, API tokens and users." />
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
          </Stack>
        </Tabs.Panel>
        <Tabs.Panel value="tokens">
          <Tokens role={user.role} />
        </Tabs.Panel>
        {isAdmin && (
          <Tabs.Panel value="users">
            <Users selfId={user.id} />
          </Tabs.Panel>
        )}
      </Tabs>
    </>
  );
}
