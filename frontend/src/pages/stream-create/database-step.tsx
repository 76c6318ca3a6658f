import { Button, Checkbox, Group, Radio, Stack, Text } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { sessionQuery } from "@/api/session";
import type { Database } from "@/api/types";
import { ConnectionTestResult } from "@/features/connection-test/connection-test-result";
import { DatabaseDrawer } from "@/features/database-form/database-drawer";
import { addressOf } from "@/lib/address";
import { covers } from "@/lib/session-role";
import { Empty } from "@/ui/faces";
import classes from "./database-step.module.css";

interface DatabaseStepProps {
  label: string;
  databases: Database[];
  value: string | null;
  onChange: (id: string) => void;
}

export function DatabaseStep({ label, databases, value, onChange }: DatabaseStepProps) {
  return (
    <Cards label={label} databases={databases} onAdded={onChange}>
      <Radio.Group value={value ?? ""} onChange={onChange} label={label}>
        <div className={classes.grid}>
          {databases.map((database) => (
            <Radio.Card
              key={database.id}
              className={classes.card}
              value={database.id}
              aria-label={database.name}
            >
              <CardText database={database} indicator={<Radio.Indicator mt={2} />} />
            </Radio.Card>
          ))}
        </div>
      </Radio.Group>
    </Cards>
  );
}

interface DestinationsStepProps {
  databases: Database[];
  /** The source. */
  taken: string | null;
  value: string[];
  onChange: (ids: string[]) => void;
}

/** One or several; the source cannot be chosen. */
export function DestinationsStep({ databases, taken, value, onChange }: DestinationsStepProps) {
  return (
    <Cards label="Destination database" databases={databases} onAdded={(id) => onChange([...value, id])}>
      <Checkbox.Group
        value={value}
        onChange={onChange}
        label="Destination databases"
        description="One or several. Several share one capture and one queue, and each keeps its own pace."
      >
        <div className={classes.grid}>
          {databases.map((database) => (
            <Checkbox.Card
              key={database.id}
              className={classes.card}
              value={database.id}
              disabled={database.id === taken}
              aria-label={database.name}
            >
              <CardText
                database={database}
                indicator={<Checkbox.Indicator mt={2} />}
                note={database.id === taken ? "already the source" : undefined}
              />
            </Checkbox.Card>
          ))}
        </div>
      </Checkbox.Group>
    </Cards>
  );
}

interface CardsProps {
  label: string;
  databases: Database[];
  onAdded: (id: string) => void;
  children: ReactNode;
}

function Cards({ label, databases, onAdded, children }: CardsProps) {
  const [adding, setAdding] = useState(false);
  const mayAct = covers(useQuery(sessionQuery).data?.user.role, "operator");
  const add = (
    <Button
      variant="default"
      disabled={!mayAct}
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
          {children}
          <Group>{add}</Group>
        </>
      )}
      <DatabaseDrawer
        opened={adding}
        onClose={() => setAdding(false)}
        database={null}
        onSaved={(database) => onAdded(database.id)}
        renderTest={(test) => <ConnectionTestResult test={test} />}
      />
    </Stack>
  );
}

function CardText(props: { database: Database; indicator: ReactNode; note?: string }) {
  const { database, indicator, note } = props;
  return (
    <Group gap="sm" wrap="nowrap" align="flex-start">
      {indicator}
      <div style={{ minWidth: 0 }}>
        <Text size="sm" fw={600}>
          {database.name}
        </Text>
        <Text size="xs" c="dimmed" ff="monospace" truncate>
          {addressOf(database)}
        </Text>
        <Text size="xs" c="dimmed">
          {note ?? `PostgreSQL ${database.version ?? "version not tested yet"}`}
        </Text>
      </div>
    </Group>
  );
}
