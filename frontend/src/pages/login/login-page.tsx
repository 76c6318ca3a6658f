import { Button, PasswordInput, Stack, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Navigate, useRouter } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { asProblem } from "@/api/problem";
import { problemInWords } from "@/api/problem-in-words";
import { sessionQuery, useLogin } from "@/api/session";
import { ProblemAlert } from "@/ui/problem-alert";
import { CodeForm } from "./code-form";
import { Entrance } from "./entrance";

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

  const enter = () => router.history.push(localPath(next));
  const codeWanted = login.isError && asProblem(login.error).code === "second_factor_required";
  const again = () => {
    setPassword("");
    login.reset();
  };
  return (
    <Entrance title="Log in to Thalweg" subtitle="Replication for PostgreSQL">
      {codeWanted ? (
        <CodeForm onLoggedIn={enter} onBack={again} />
      ) : (
        <form
          className="panel"
          style={{ padding: 20 }}
          onSubmit={(event) => {
            event.preventDefault();
            login.mutate({ name, password }, { onSuccess: enter });
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
      )}
    </Entrance>
  );
}

/** Only paths of this console: an address from elsewhere must not lead away after the login. */
function localPath(next: string | undefined): string {
  return next?.startsWith("/") && !next.startsWith("//") && !next.startsWith("/\\") ? next : "/";
}
