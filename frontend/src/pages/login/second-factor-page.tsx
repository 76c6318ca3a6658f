import { Box, Button } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { useEffect } from "react";
import { useSecondFactorChanged } from "@/api/second-factor";
import { useLogout } from "@/api/session";
import { SecondFactorSetup } from "@/features/identity/second-factor-setup";
import { Entrance } from "./entrance";

/** All that there is for somebody of whom a second factor is demanded, until one is set up. */
export function SecondFactorPage({ userId }: { userId: string }) {
  const changed = useSecondFactorChanged();
  const logout = useLogout();
  const navigate = useNavigate();
  useEffect(() => {
    document.title = "Set up a second factor · Thalweg";
  }, []);
  return (
    <Entrance
      title="Set up a second factor"
      subtitle="An admin requires a code in addition to your password. You need an authenticator app for it."
    >
      <Box className="panel" p={20}>
        <SecondFactorSetup userId={userId} replaces={false} onDone={() => void changed()} />
      </Box>
      <Button
        variant="subtle"
        fullWidth
        mt="xs"
        loading={logout.isPending}
        onClick={() => logout.mutate(undefined, { onSuccess: () => navigate({ to: "/login", search: {} }) })}
      >
        Log out
      </Button>
    </Entrance>
  );
}
