// The focus of an opened dialog lies in its field, so that one can type at once. Each dialog with a field is tried.
import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import type { ReactNode } from "react";
import { beforeEach, describe, expect, it } from "vitest";
import { CureActions } from "@/features/advisor-cures/cure-actions";
import { RunActions } from "@/features/advisor-runs/run-actions";
import { TakeSnapshot } from "@/features/advisor-runs/take-snapshot";
import { ScheduleForm } from "@/features/advisor-schedules/schedule-form";
import { AcknowledgeDialog } from "@/features/alerts/acknowledge-dialog";
import { ChannelDrawer } from "@/features/alerts/channel-drawer";
import { RuleDrawer } from "@/features/alerts/rule-drawer";
import { SilenceDialog } from "@/features/alerts/silence-dialog";
import { DatabaseDrawer } from "@/features/database-form/database-drawer";
import { ConfirmDecision } from "@/features/error-queue/confirm-decision";
import { EditChange } from "@/features/error-queue/edit-change";
import { ExecuteSeveral } from "@/features/error-queue/execute-several";
import { SecondFactor } from "@/features/identity/second-factor";
import { Tokens } from "@/features/identity/tokens";
import { Users } from "@/features/identity/users";
import { DestinationParameters } from "@/features/parameters/destination-parameters";
import { ConfirmResolution } from "@/features/stream-tables/table-resolution";
import { RowRules } from "@/features/table-rules/row-rules";
import { Transformations } from "@/features/table-rules/transformations";
import { PropagationAddress } from "@/pages/engines/propagation-address";
import { AddDestination } from "@/pages/stream/add-destination";
import { DestinationRules } from "@/pages/stream/destination-rules";
import { StreamRules } from "@/pages/stream/stream-rules";
import { ConfirmByName } from "@/ui/confirm-by-name";
import { ConfirmStop } from "@/ui/confirm-stop";
import { advisorRun, finding } from "./advisor";
import { alert, rule } from "./alerts";
import { database, destination, engine, parallelism, session, stream } from "./data";
import { dialogsWithFields } from "./dialog-fields";
import { contents, error } from "./parked-data";
import { renderUi, stubApi } from "./render";

interface Case {
  ui: ReactNode;
  /** The button that opens it; absent of what is open. */
  opens?: string;
  /** Label or name of the element that has the focus then. */
  field: string;
}

const close = () => {};
const call = () => ({ method: "DELETE", path: "/api/v1/streams/stream01" }) as const;
const path = "/api/v1/streams/stream01/destinations/dest01/errors";
const inQueue = { streamId: "stream01", destinationId: "dest01", path, onClose: close };
const change = contents.changes[0] as (typeof contents.changes)[number];
const edited = { ...inQueue, errorId: 4, change, number: 1, etag: null };
const ofStream = { stream: stream(), mayAct: true };
const ofTwo = {
  ...ofStream,
  stream: stream({
    destinations: [
      destination(),
      destination({ id: "far", database: { id: "d2", name: "far", address: "" } }),
    ],
  }),
};
const [orders] = stream().tables;
const { schema, table } = orders as (typeof ofStream.stream.tables)[number];
const name = `${schema}.${table}`;
const ruled = {
  sourceId: "source01",
  tables: [{ schema, table }],
  rules: {
    include: [{ schema: "public", table: "*" }],
    row_rules: [
      {
        scope: "table" as const,
        schema,
        table,
        positive: [{ name: "north", subset: false, on_error: "stop" as const }],
      },
    ],
    transformations: [{ schema, table, steps: [{ type: "drop_column" as const, column: "mail" }] }],
  },
  onChange: close,
};
const cure = finding.cures[0] as (typeof finding.cures)[number];
const other = { ...session.user, id: "user0002", name: "ben" };

const cases: Record<string, Case[]> = {
  "ui/confirm-stop": [
    {
      ui: (
        <ConfirmStop opened name="orders" call={call()} onClose={close} onConfirm={close}>
          It stops.
        </ConfirmStop>
      ),
      field: "Stop",
    },
  ],
  "ui/confirm-by-name": [
    {
      ui: (
        <ConfirmByName
          opened
          title="Delete"
          name="orders"
          call={call}
          pending={false}
          forceExplanation="Without the database."
          onClose={close}
          onConfirm={close}
        >
          It goes.
        </ConfirmByName>
      ),
      field: "Type orders to confirm",
    },
  ],
  "features/identity/tokens": [
    { ui: <Tokens role={session.user.role} />, opens: "Create token", field: "Name" },
  ],
  "features/identity/users": [
    { ui: <Users selfId="user0001" />, opens: "Create user", field: "User name" },
    { ui: <Users selfId="user0001" />, opens: "Set password of ben", field: "New password" },
  ],
  "features/identity/second-factor": [
    { ui: <SecondFactor userId="user0001" />, opens: "Set up", field: "Current password" },
  ],
  "features/error-queue/edit-change": [
    { ui: <EditChange {...edited} leavesOut />, field: "Reason" },
    { ui: <EditChange {...edited} leavesOut={false} />, field: "Edit id" },
  ],
  "features/error-queue/confirm-decision": [
    { ui: <ConfirmDecision {...inQueue} error={error} discards onConfirm={close} />, field: "Reason" },
  ],
  "features/database-form/database-drawer": [
    { ui: <DatabaseDrawer opened database={null} onClose={close} renderTest={() => null} />, field: "Name" },
  ],
  "features/advisor-schedules/schedule-form": [
    { ui: <ScheduleForm schedule={null} streams={[]} onClose={close} />, field: "Name" },
  ],
  "features/alerts/silence-dialog": [
    { ui: <SilenceDialog opened rule={null} streamId={null} onClose={close} />, field: "Reason" },
  ],
  "features/alerts/channel-drawer": [
    { ui: <ChannelDrawer opened channel={null} onClose={close} />, field: "Name" },
  ],
  "features/alerts/rule-drawer": [
    { ui: <RuleDrawer rule={rule} onClose={close} />, field: "Latency p99, above" },
  ],
  "features/alerts/acknowledge-dialog": [
    { ui: <AcknowledgeDialog opened alert={alert("alert1")} onClose={close} />, field: "Note" },
  ],
  "features/advisor-runs/run-actions": [
    { ui: <RunActions run={advisorRun()} mayAct onDeleted={close} />, opens: "Name and note", field: "Name" },
  ],
  "features/advisor-runs/take-snapshot": [
    {
      ui: <TakeSnapshot mayAct streams={[{ id: "stream01", name: "orders" }]} onTaken={close} />,
      opens: "Take a snapshot with options",
      field: "Name",
    },
  ],
  "pages/engines/propagation-address": [
    { ui: <PropagationAddress engine={engine} onClose={close} />, field: "Address" },
  ],
  "pages/stream/add-destination": [
    {
      ui: <AddDestination mayAct stream={stream({ actions: ["add_destination"] })} />,
      opens: "Add destination",
      field: "Database",
    },
  ],
  "features/error-queue/execute-several": [
    {
      ui: <ExecuteSeveral {...inQueue} total={2} disabled={false} />,
      opens: "Execute all",
      field: "Role",
    },
  ],
  "features/advisor-cures/cure-actions": [
    {
      ui: <CureActions runId={7} finding={finding} cure={cure} index={0} applied={[]} mayAct />,
      opens: "Apply",
      field: "Measure again after",
    },
  ],
  "features/parameters/destination-parameters": [
    {
      ui: <DestinationParameters {...ofStream} destination={destination()} opened onClose={close} />,
      field: "parallelism",
    },
  ],
  "features/table-rules/row-rules": [
    {
      ui: <RowRules {...ruled} captureEngineId={null} />,
      opens: `Rules of ${name}`,
      field: "Name of the rule",
    },
  ],
  "features/table-rules/transformations": [
    {
      ui: <Transformations {...ruled} maskKey={{ value: "", onChange: close, isSet: false }} />,
      opens: `Transformations of ${name}`,
      field: "Column",
    },
  ],
  "features/stream-tables/table-resolution": [
    {
      ui: (
        <ConfirmResolution
          stream={stream()}
          asked={{ resolution: "copy", destinationId: "warehouse", schema: "public", table: "orders" }}
          onClose={close}
        />
      ),
      field: "Reason",
    },
  ],
  "pages/stream/stream-rules": [
    { ui: <StreamRules {...ofStream} />, opens: "Edit rules", field: "Include pattern 1, schema" },
  ],
  "pages/stream/destination-rules": [
    { ui: <DestinationRules {...ofTwo} />, opens: "Rules of warehouse", field: "Add rules" },
  ],
};

const page = (items: unknown[]) => ({ body: { items, next_cursor: null } });

beforeEach(() => {
  stubApi({
    "GET /api/v1/session": { body: session },
    "GET /api/v1/overview": { body: { streams: [], engines_online: 1, engines_total: 1, live: true } },
    "GET /api/v1/alerts/rules": { body: { rules: [rule] } },
    "GET /api/v1/tokens": page([]),
    "GET /api/v1/users": page([session.user, other]),
    "GET /api/v1/databases": page([database("source01", "orders"), database("dest0002", "archive")]),
    "GET /api/v1/engines": page([engine]),
    "GET /api/v1/stream-parameters": { body: { parameters: [parallelism] } },
    "GET /api/v1/databases/source01/columns": { body: { columns: [] } },
    "GET /api/v1/users/user0001/second-factor": {
      body: { enabled: false, since: null, demanded: false, recovery_codes_left: 0 },
    },
  });
});

describe("a dialog", () => {
  const sources = import.meta.glob<string>("../{app,features,pages,ui}/**/*.tsx", {
    eager: true,
    query: "?raw",
    import: "default",
  });

  it("with fields is tried here", () => {
    const dialogs = Object.keys(sources).flatMap((path) =>
      dialogsWithFields(path, sources).map(() => path.replace(/^\.\.\/|\.tsx$/g, "")),
    );
    const countOf = (file: string) => dialogs.filter((other) => other === file).length;
    expect(dialogs.length).toBeGreaterThan(20);
    expect(dialogs.filter((file) => (cases[file]?.length ?? 0) < countOf(file))).toEqual([]);
  });

  for (const [file, [...ways]] of Object.entries(cases))
    for (const { ui, opens, field } of ways)
      it(`has the focus in “${field}” (${file})`, async () => {
        renderUi(ui);
        if (opens) await userEvent.click(await screen.findByRole("button", { name: opens }));
        const dialog = await screen.findByRole("dialog");
        await waitFor(() => expect(dialog).toContainElement(document.activeElement as HTMLElement));
        await waitFor(() => expect(document.activeElement).toHaveAccessibleName(field));
      });
});
