import type { Demand } from "@/api/types";

export const secondFactorInWords = (enabled: boolean) =>
  enabled
    ? ({ label: "On", tone: "good", definition: "Logging in takes a code beside the password." } as const)
    : ({ label: "Off", tone: "quiet", definition: "The password alone lets in." } as const);

export const demands: { value: Demand; label: string }[] = [
  { value: "nobody", label: "Nobody" },
  { value: "admins", label: "Admins" },
  { value: "everybody", label: "Everybody" },
];
