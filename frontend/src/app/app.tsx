import { MantineProvider } from "@mantine/core";
import { Notifications } from "@mantine/notifications";
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { setSecondFactorDemandedHandler, setUnauthenticatedHandler } from "@/api/client";
import { keys } from "@/api/keys";
import { createQueryClient } from "./query-client";
import { createAppRouter } from "./router";
import { cssVariables, theme } from "./theme";

const queryClient = createQueryClient();
const router = createAppRouter(queryClient);

// When a request finds the session over, the guard of the shell sees it in the cache and shows the login.
setUnauthenticatedHandler(() => queryClient.setQueryData(keys.session, null));
// Likewise when one finds that a second factor is demanded meanwhile.
setSecondFactorDemandedHandler(() => void queryClient.invalidateQueries({ queryKey: keys.session }));

export function App() {
  return (
    <MantineProvider theme={theme} cssVariablesResolver={cssVariables} defaultColorScheme="auto">
      <Notifications position="bottom-right" />
      <QueryClientProvider client={queryClient}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </MantineProvider>
  );
}
