import { Button } from "@mantine/core";
import { IconMapPinOff } from "@tabler/icons-react";
import { Link } from "@tanstack/react-router";
import { Empty } from "@/ui/faces";

export function NotFoundPage() {
  return (
    <Empty
      icon={<IconMapPinOff size={36} />}
      title="There is no such page"
      actions={
        <Button component={Link} to="/">
          Overview
        </Button>
      }
    >
      The address may be mistyped, or its subject was deleted.
    </Empty>
  );
}
