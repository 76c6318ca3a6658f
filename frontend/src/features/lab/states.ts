import type { LabState } from "@/api/types";
import type { StateInWords } from "@/lib/states";

export const stateOfAction: Record<LabState, StateInWords> = {
  off: { label: "Off", tone: "quiet", definition: "Nothing is changed." },
  starting: {
    label: "Starting",
    tone: "busy",
    definition: "Requested, but not yet in effect at the database.",
  },
  on: { label: "On", tone: "warning", definition: "In effect." },
  gone: {
    label: "Cured",
    tone: "good",
    definition: "It was in effect until something at the database, such as a cure, ended it.",
  },
  ending: {
    label: "Ending",
    tone: "busy",
    definition: "It is being undone. Changes that are being applied may have to finish first.",
  },
};
