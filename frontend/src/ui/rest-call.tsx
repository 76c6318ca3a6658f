import { Button, Popover } from "@mantine/core";
import { IconTerminal2 } from "@tabler/icons-react";
import { curl, type RestCallSpec } from "@/lib/curl";
import { CopyBlock } from "./copy-block";

export function RestCall({ call, maxHeight }: { call: RestCallSpec; maxHeight?: number }) {
  return (
    <CopyBlock
      text={curl(call, window.location.origin)}
      label={`${call.method} ${call.path}`}
      maxHeight={maxHeight}
    />
  );
}

/** A quiet button beside an action that shows the REST call doing the same. */
export function RestCallButton({ calls, label = "REST call" }: { calls: RestCallSpec[]; label?: string }) {
  return (
    <Popover width={560} position="bottom-end" withArrow shadow="md" trapFocus returnFocus>
      <Popover.Target>
        <Button variant="subtle" color="gray" leftSection={<IconTerminal2 size={14} aria-hidden />}>
          {label}
        </Button>
      </Popover.Target>
      <Popover.Dropdown aria-label="REST call">
        <div style={{ display: "grid", gap: 10 }}>
          {calls.map((call) => (
            <RestCall key={`${call.method} ${call.path}`} call={call} />
          ))}
        </div>
      </Popover.Dropdown>
    </Popover>
  );
}
