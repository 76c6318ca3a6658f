// Words for the rest of a copy after its rows, with no time that nobody has measured.
import type { Instantiation } from "@/api/types";
import { asText, byteRate, bytes, duration, formatCount } from "@/lib/format";

const KINDS = "indexes, constraints and foreign keys";

/** Of indexes, constraints and foreign keys: how many are missing, how much they read, and how long that takes. */
export function indexesInWords(copy: Instantiation): string {
  const missing = copy.indexes_total - copy.indexes_built;
  if (missing <= 0) return `All ${KINDS} that the copy makes are built.`;
  const builds = copy.stage === "indexes";
  const what = `${formatCount(missing)} of ${formatCount(copy.indexes_total)} ${KINDS}`;
  const begin = builds ? `${what} are being built or wait for it` : `Then ${what} follow`;
  const { index_bytes_left, indexes_seconds_left, index_bytes_per_second } = copy;
  if (index_bytes_left === null) return `${begin}. How much they have to read cannot be estimated yet.`;
  const reads = `${begin}. They read ${asText(bytes(index_bytes_left))} of rows`;
  if (indexes_seconds_left === null || index_bytes_per_second === null)
    return `${reads}; how fast is not known before the first one is built.`;
  const rate = asText(byteRate(index_bytes_per_second));
  return `${reads}: about ${asText(duration(indexes_seconds_left))} at the ${rate} measured in this copy.`;
}
