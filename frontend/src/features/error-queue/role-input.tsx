import { TextInput } from "@mantine/core";

interface RoleInputProps {
  role: string;
  onChange: (role: string) => void;
}

/** As whom parked transactions are executed or tried. Empty: as the engine's user. */
export function RoleInput({ role, onChange }: RoleInputProps) {
  return (
    <TextInput
      data-autofocus
      label="Role"
      description="Apply the changes as this role of the destination, with its privileges and policies. The engine's user has to be a member of it. Empty: as the engine's user."
      placeholder="the engine's user"
      value={role}
      onChange={(event) => onChange(event.currentTarget.value)}
      maxLength={63}
    />
  );
}

/** The body of the request. */
export function asRole(role: string): { role: string } | undefined {
  return role === "" ? undefined : { role };
}
