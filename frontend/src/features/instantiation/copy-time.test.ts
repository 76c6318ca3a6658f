import { expect, it } from "vitest";
import type { Instantiation } from "@/api/types";
import { indexesInWords } from "./copy-time";

const copy = (values: Partial<Instantiation>) =>
  ({
    stage: "rows",
    indexes_total: 15,
    indexes_built: 9,
    index_bytes_left: 3 * 1024 ** 3,
    index_bytes_per_second: null,
    indexes_seconds_left: null,
    ...values,
  }) as Instantiation;

it("tells what follows the rows, and no time before one was measured", () => {
  expect(indexesInWords(copy({}))).toMatch(
    /^Then 6 of 15 indexes, constraints and foreign keys follow\. They read 3(\.\d+)?.GiB of rows; how fast is not known before/,
  );
  expect(indexesInWords(copy({ index_bytes_left: null }))).toMatch(/cannot be estimated yet\.$/);
});

it("tells the time at the rate that this copy has measured", () => {
  const measured = { index_bytes_per_second: 64 * 1024 ** 2, indexes_seconds_left: 48 };
  expect(indexesInWords(copy(measured))).toMatch(
    /: about 48(\.\d)?.s at the 64(\.\d)?.MiB\/s measured in this copy\.$/,
  );
  expect(indexesInWords(copy({ ...measured, stage: "indexes" }))).toMatch(
    /^6 of 15 .* are being built or wait for it\./,
  );
  expect(indexesInWords(copy({ indexes_built: 15 }))).toMatch(/^All .* are built\.$/);
});
