import type { Demand } from "@/api/types";

export const secondFactorInWords = (enabled: boolean) =>
  enabled
    ? ({ label: "On", tone: "good", definition: "Logging in takes the password and a code." } as const)
    : ({ label: "Off", tone: "quiet", definition: "Logging in takes the password alone." } as const);

export const demands: { value: Demand; label: string }[] = [
  { value: "nobody", label: "Nobody" },
  { value: "admins", label: "Admins" },
  { value: "everybody", label: "Everybody" },
];
