import {
  ActionIcon,
  AppShell,
  Box,
  Button,
  Center,
  Drawer,
  Group,
  Loader,
  Menu,
  Progress,
} from "@mantine/core";
import { IconChevronDown, IconLogout, IconMenu2, IconUser } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { Link, Outlet, useLocation, useNavigate, useRouter, useRouterState } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { useLiveEvents } from "@/api/live";
import { problemInWords } from "@/api/problem-in-words";
import { sessionQuery, useLogout } from "@/api/session";
import type { Session } from "@/api/types";
import { AlertBell } from "@/features/alerts/alert-bell";
import { LiveMarker } from "@/features/live-status/live-marker";
import { VersionNote } from "@/features/version/version-note";
import { SecondFactorPage } from "@/pages/login/second-factor-page";
import { BrandMark } from "@/ui/brand-mark";
import { useNarrow } from "@/ui/narrow";
import { ProblemAlert } from "@/ui/problem-alert";
import { ColorSchemeToggle } from "./color-scheme-toggle";
import { Navigation } from "./navigation";
import classes from "./shell.module.css";

/** Lets only those who are logged in see the pages. */
export function GuardedShell() {
  const session = useQuery(sessionQuery);
  if (session.isPending) {
    return (
      <Center h="100vh">
        <Loader aria-label="Loading" />
      </Center>
    );
  }
  if (session.isError) {
    return (
      <Center h="100vh" p="xl" component="main">
        <ProblemAlert problem={problemInWords(session.error)} onRetry={() => session.refetch()} />
      </Center>
    );
  }
  if (!session.data) return <ToLogin />;
  if (session.data.second_factor_missing) return <SecondFactorPage userId={session.data.user.id} />;
  return <Shell session={session.data} />;
}

/**
 * Leads to the login once, remembering the page that was asked for. It does not listen to the location: while the
 * router is on its way, that is the login's own address, and following it would never end.
 */
function ToLogin() {
  const router = useRouter();
  useEffect(() => {
    const { pathname, href } = router.state.location;
    if (pathname === "/login") return;
    void router.navigate({ to: "/login", search: { next: href === "/" ? undefined : href }, replace: true });
  }, [router]);
  return null;
}

function Shell({ session }: { session: Session }) {
  useLiveEvents();
  const content = useRef<HTMLDivElement>(null);
  const narrow = useNarrow();
  useFocusOnNavigation(content);
  return (
    <AppShell header={{ height: 48 }} navbar={narrow ? undefined : { width: 188, breakpoint: 0 }}>
      <a href="#content" className="skip-link">
        Skip to content
      </a>
      <AppShell.Header className={classes.header}>
        <Group gap={6} wrap="nowrap">
          {narrow && <NavigationDrawer />}
          <Link to="/" className={classes.brand} aria-label="Thalweg, overview">
            <BrandMark />
            Thalweg
          </Link>
        </Group>
        <Group gap={narrow ? 6 : "sm"} wrap="nowrap">
          <LiveMarker />
          <AlertBell />
          <ColorSchemeToggle />
          <UserMenu session={session} narrow={narrow} />
        </Group>
      </AppShell.Header>
      {!narrow && (
        <AppShell.Navbar className={classes.navbar} component="div">
          <Navigation />
          <VersionNote />
        </AppShell.Navbar>
      )}
      <AppShell.Main className={classes.main}>
        <ComingPage />
        <Box id="content" ref={content} tabIndex={-1} className={classes.content}>
          <Outlet />
        </Box>
      </AppShell.Main>
    </AppShell>
  );
}

/** A page that was chosen and is not there yet: without a sign of it a click seems lost. */
function ComingPage() {
  const isComing = useRouterState({ select: ({ status }) => status === "pending" });
  return isComing ? (
    <Progress className={classes.coming} value={100} size={3} animated aria-label="The page is loading" />
  ) : null;
}

/** After a change of page the keyboard starts at the page's content, as after a full load. */
function useFocusOnNavigation(content: React.RefObject<HTMLDivElement | null>) {
  const path = useLocation({ select: (location) => location.pathname });
  const before = useRef(path);
  useEffect(() => {
    if (before.current === path) return;
    before.current = path;
    content.current?.focus({ preventScroll: true });
    window.scrollTo({ top: 0 });
  }, [path, content]);
}

/** On a phone the navigation is a drawer; choosing a page closes it. */
function NavigationDrawer() {
  const [opened, setOpened] = useState(false);
  const close = () => setOpened(false);
  return (
    <>
      <ActionIcon size={40} aria-label="Menu" aria-expanded={opened} onClick={() => setOpened(true)}>
        <IconMenu2 size={20} stroke={1.7} aria-hidden />
      </ActionIcon>
      <Drawer opened={opened} onClose={close} position="left" size={264} title="Thalweg" padding={0}>
        <Navigation onChosen={close} />
        <VersionNote />
      </Drawer>
    </>
  );
}

function UserMenu({ session, narrow }: { session: Session; narrow: boolean }) {
  const logout = useLogout();
  const navigate = useNavigate();
  return (
    <Menu position="bottom-end" width={200}>
      <Menu.Target>
        {narrow ? (
          <ActionIcon size={30} aria-label={session.user.name}>
            <IconUser size={17} stroke={1.7} aria-hidden />
          </ActionIcon>
        ) : (
          <Button
            variant="subtle"
            color="gray"
            leftSection={<IconUser size={15} aria-hidden />}
            rightSection={<IconChevronDown size={13} aria-hidden />}
          >
            {session.user.name}
          </Button>
        )}
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>Role: {session.user.role}</Menu.Label>
        <Menu.Item component={Link} to="/settings">
          Settings
        </Menu.Item>
        <Menu.Item
          leftSection={<IconLogout size={14} aria-hidden />}
          onClick={() =>
            logout.mutate(undefined, { onSuccess: () => navigate({ to: "/login", search: {} }) })
          }
        >
          Log out
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
