import { Button, Group, Radio, Stack, Text } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { useState } from "react";
import type { Database } from "@/api/types";
import { ConnectionTestResult } from "@/features/connection-test/connection-test-result";
import { DatabaseDrawer } from "@/features/database-form/database-drawer";
import { Empty } from "@/ui/faces";
import classes from "./database-step.module.css";

interface DatabaseStepProps {
  label: string;
  databases: Database[];
  /** Cannot be chosen here: the other end. */
  taken: string | null;
  value: string | null;
  onChange: (id: string) => void;
}

export function DatabaseStep({ label, databases, taken, value, onChange }: DatabaseStepProps) {
  const [adding, setAdding] = useState(false);
  const add = (
    <Button
      variant="default"
      leftSection={<IconPlus size={14} aria-hidden />}
      onClick={() => setAdding(true)}
    >
      Add database
    </Button>
  );
  return (
    <Stack gap="sm">
      {databases.length === 0 ? (
        <Empty title="No databases yet" actions={add}>
          Register the {label.toLowerCase()} here; the connection test says whether it can be reached.
        </Empty>
      ) : (
        <>
          <Radio.Group value={value ?? ""} onChange={onChange} label={label}>
            <div className={classes.grid}>
              {databases.map((database) => (
                <DatabaseCard key={database.id} database={database} disabled={database.id === taken} />
              ))}
            </div>
          </Radio.Group>
          <Group>{add}</Group>
        </>
      )}
      <DatabaseDrawer
        opened={adding}
        onClose={() => setAdding(false)}
        database={null}
        onSaved={(database) => onChange(database.id)}
        renderTest={(test) => <ConnectionTestResult test={test} />}
      />
    </Stack>
  );
}

function DatabaseCard({ database, disabled }: { database: Database; disabled: boolean }) {
  return (
    <Radio.Card className={classes.card} value={database.id} disabled={disabled} aria-label={database.name}>
      <Group gap="sm" wrap="nowrap" align="flex-start">
        <Radio.Indicator mt={2} />
        <div style={{ minWidth: 0 }}>
          <Text size="sm" fw={600}>
            {database.name}
          </Text>
          <Text size="xs" c="dimmed" ff="monospace" truncate>
            {database.host}:{database.port}/{database.dbname}
          </Text>
          <Text size="xs" c="dimmed">
            {disabled ? "already the source" : `PostgreSQL ${database.version ?? "version not tested yet"}`}
          </Text>
        </div>
      </Group>
    </Radio.Card>
  );
}
