import { Box, Button, Center, PasswordInput, Stack, Text, TextInput, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Navigate, useRouter } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { problemInWords } from "@/api/problem-in-words";
import { sessionQuery, useLogin } from "@/api/session";
import { BrandMark } from "@/ui/brand-mark";
import { ProblemAlert } from "@/ui/problem-alert";

const route = getRouteApi("/login");

export function LoginPage() {
  const { next } = route.useSearch();
  const router = useRouter();
  const session = useQuery(sessionQuery);
  const login = useLogin();
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");

  const first = useRef<HTMLInputElement>(null);

  useEffect(() => {
    document.title = "Log in · Thalweg";
    first.current?.focus();
  }, []);

  if (session.data && !login.isPending) return <Navigate to={localPath(next)} replace />;

  return (
    <Center component="main" mih="100vh" p="md">
      <Box w={380}>
        <Stack align="center" gap={6} mb="lg">
          <BrandMark size={40} />
          <Title order={1}>Log in to Thalweg</Title>
          <Text size="sm" c="dimmed">
            Replication for PostgreSQL
          </Text>
        </Stack>
        <form
          className="panel"
          style={{ padding: 20 }}
          onSubmit={(event) => {
            event.preventDefault();
            login.mutate({ name, password }, { onSuccess: () => router.history.push(localPath(next)) });
          }}
        >
          <Stack gap="sm">
            {login.isError && <ProblemAlert problem={problemInWords(login.error)} />}
            <TextInput
              ref={first}
              label="User name"
              autoComplete="username"
              required
              withAsterisk={false}
              value={name}
              onChange={(event) => setName(event.currentTarget.value)}
            />
            <PasswordInput
              label="Password"
              autoComplete="current-password"
              required
              withAsterisk={false}
              value={password}
              onChange={(event) => setPassword(event.currentTarget.value)}
              visibilityToggleButtonProps={{ "aria-label": "Show password" }}
            />
            <Button type="submit" size="sm" loading={login.isPending} fullWidth mt={4}>
              Log in
            </Button>
          </Stack>
        </form>
      </Box>
    </Center>
  );
}

/** Only paths of this console: an address from elsewhere must not lead away after the login. */
function localPath(next: string | undefined): string {
  return next?.startsWith("/") && !next.startsWith("//") && !next.startsWith("/\\") ? next : "/";
}
