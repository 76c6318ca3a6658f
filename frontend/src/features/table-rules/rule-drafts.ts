// The rules of a place as the editor holds them: one list, whose members say which set they are in.
import type { OnError, RowRule, RuledOperation, ScopedRules } from "@/api/types";
import type { RulePlace } from "./rule-scopes";

export interface RuleDraft {
  /** For React; never sent. */
  key: number;
  positive: boolean;
  name: string;
  /** Empty: all. */
  operations: RuledOperation[];
  /** Empty: always. */
  condition: string;
  onError: OnError;
}

export interface RulesDraft {
  rules: RuleDraft[];
  /** All positive rules make a subset, or none does. */
  subset: boolean;
  /** Without a positive rule: whether there is a positive set all the same, which lets nothing pass. */
  nothingPasses: boolean;
}

export const operations: RuledOperation[] = ["INSERT", "UPDATE", "DELETE", "TRUNCATE"];

/** The policies of a rule for changes for which its condition cannot be evaluated. */
export const policies: { value: OnError; label: string }[] = [
  { value: "stop", label: "Stop the stream" },
  { value: "as_true", label: "Treat it as true" },
  { value: "as_false", label: "Treat it as not true" },
];

export function draftOf(own: ScopedRules | undefined): RulesDraft {
  const positive = own?.positive ?? [];
  const drafts = (rules: RowRule[], isPositive: boolean) =>
    rules.map((rule) => ({
      positive: isPositive,
      name: rule.name,
      operations: rule.operations ?? [],
      condition: rule.condition ?? "",
      onError: rule.on_error ?? "stop",
    }));
  const all = [...drafts(positive, true), ...drafts(own?.negative ?? [], false)];
  return {
    rules: all.map((rule, key) => ({ ...rule, key })),
    subset: positive.some((rule) => rule.subset),
    nothingPasses: own?.positive?.length === 0,
  };
}

export const mayBeSubset = ({ rules }: RulesDraft) =>
  rules.some((rule) => rule.positive) && !rules.some((rule) => rule.positive && rule.operations.length > 0);

/** Null: there are none. */
export function rulesOf({ scope, schema, table }: RulePlace, draft: RulesDraft): ScopedRules | null {
  const subset = draft.subset && mayBeSubset(draft);
  const sent = (rule: RuleDraft): RowRule => ({
    name: rule.name.trim(),
    ...(rule.operations.length > 0 ? { operations: rule.operations } : {}),
    ...(rule.condition.trim() ? { condition: rule.condition } : {}),
    subset: rule.positive && subset,
    on_error: rule.condition.trim() ? rule.onError : "stop",
  });
  const positive = draft.rules.filter((rule) => rule.positive).map(sent);
  const negative = draft.rules.filter((rule) => !rule.positive).map(sent);
  const hasPositive = positive.length > 0 || draft.nothingPasses;
  if (!hasPositive && negative.length === 0) return null;
  return {
    scope,
    ...(schema ? { schema } : {}),
    ...(table ? { table } : {}),
    ...(hasPositive ? { positive } : {}),
    ...(negative.length > 0 ? { negative } : {}),
  };
}

/** The fault of a rule's name, in words. `taken`: by rules of other places that concern the same tables. */
export function faultOfName(
  { rules }: RulesDraft,
  rule: RuleDraft,
  taken: ReadonlySet<string>,
): string | undefined {
  const name = rule.name.trim();
  if (name === "") return "Enter a name.";
  if (taken.has(name) || rules.some((other) => other.key !== rule.key && other.name.trim() === name))
    return "Another rule for the table has this name.";
  return undefined;
}
