import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { expect, it } from "vitest";
import type { ErrorPolicy } from "@/api/types";
import { renderUi } from "@/test/render";
import { ErrorPolicies } from "./error-policies";

let last: ErrorPolicy[] = [];

function Editor({ policies }: { policies: ErrorPolicy[] }) {
  const [now, setNow] = useState(policies);
  last = now;
  return <ErrorPolicies policies={now} onChange={setNow} />;
}

const one = (number: number) => screen.getByRole("group", { name: `Policy ${number}` });

it("adds a policy, with what its action needs and no more", async () => {
  renderUi(<Editor policies={[]} />);
  await userEvent.click(screen.getByRole("button", { name: "Add a policy" }));
  expect(last).toEqual([{ action: "park" }]);
  await userEvent.type(screen.getByRole("combobox", { name: "Error" }), "23505");
  await userEvent.type(screen.getByRole("textbox", { name: "Table" }), "orders");
  expect(one(1)).toHaveTextContent("Name the schema and the table together.");
  await userEvent.type(screen.getByRole("textbox", { name: "Schema" }), "public");
  expect(last).toEqual([{ error: "23505", schema: "public", table: "orders", action: "park" }]);
  await userEvent.click(screen.getByRole("combobox", { name: "Action" }));
  await userEvent.click(await screen.findByRole("option", { name: "Retry" }));
  const retry = { action: "retry", times: 5, delay_seconds: 10, after_retries: "park" };
  expect(last).toEqual([{ error: "23505", schema: "public", table: "orders", ...retry }]);
  await userEvent.type(screen.getByRole("textbox", { name: "Times" }), "00");
  expect(one(1)).toHaveTextContent("Retry 1 to 100 times.");
  await userEvent.click(screen.getByRole("combobox", { name: "Action" }));
  await userEvent.click(await screen.findByRole("option", { name: "Stop the stream" }));
  expect(last).toEqual([{ error: "23505", schema: "public", table: "orders", action: "stop" }]);
});

it("puts them in another order, and removes one: the first that matches decides", async () => {
  renderUi(
    <Editor
      policies={[
        { error: "23", action: "park" },
        { error: "23505", action: "stop" },
      ]}
    />,
  );
  expect(screen.getByRole("button", { name: "Move policy 1 up" })).toBeDisabled();
  await userEvent.click(screen.getByRole("button", { name: "Move policy 2 up" }));
  expect(last.map(({ error }) => error)).toEqual(["23505", "23"]);
  await userEvent.click(screen.getByRole("button", { name: "Remove policy 1" }));
  expect(last).toEqual([{ error: "23", action: "park" }]);
});
