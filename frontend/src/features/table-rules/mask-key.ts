// The masking key. It is a secret: no draft in the browser has it, and no call that is shown.
import type { TableRules } from "@/api/types";

const LENGTH_MIN = 32;

export function needsKey(rules: TableRules): boolean {
  return (rules.transformations ?? []).some(({ steps }) =>
    steps.some((step) => step.type === "mask_column" && (step.with === "hash" || step.with === "digits")),
  );
}

/** The member of a request; none where no mask needs one, or the key is to stay or to be made. */
export function maskKeyOf(rules: TableRules, key: string): { mask_key?: string } {
  return needsKey(rules) && key !== "" ? { mask_key: key } : {};
}

export function faultOfMaskKey(rules: TableRules, key: string): string | null {
  const { mask_key } = maskKeyOf(rules, key);
  return mask_key !== undefined && mask_key.length < LENGTH_MIN
    ? `The masking key needs at least ${LENGTH_MIN} characters.`
    : null;
}

/** The body of a request as it is shown. */
export function hidingMaskKey<Body extends { mask_key?: string | null }>(body: Body): Body {
  return body.mask_key ? { ...body, mask_key: "********" } : body;
}
