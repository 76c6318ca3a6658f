import type { Role, UserRole } from "@/api/types";
import { covers } from "@/lib/session-role";

export const roles: { value: UserRole; label: string }[] = [
  { value: "viewer", label: "Viewer: sees everything, changes nothing" },
  { value: "operator", label: "Operator: databases and streams" },
  { value: "admin", label: "Admin: also engines and users" },
];

/** A token may do at most what its maker may; one that scrapes does nothing else. */
export function tokenRolesUpTo(role: UserRole): { value: Role; label: string }[] {
  const scraping = { value: "metrics" as const, label: "Metrics: reads /metrics and nothing else" };
  return [...roles.filter(({ value }) => covers(role, value)), scraping];
}
