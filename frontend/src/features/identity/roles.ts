import type { Role } from "@/api/types";
import { covers } from "@/lib/session-role";

export const roles: { value: Role; label: string }[] = [
  { value: "viewer", label: "Viewer: sees everything, changes nothing" },
  { value: "operator", label: "Operator: databases and streams" },
  { value: "admin", label: "Admin: also engines and users" },
];

/** A token may do at most what its maker may. */
export function rolesUpTo(role: Role) {
  return roles.filter(({ value }) => covers(role, value));
}
