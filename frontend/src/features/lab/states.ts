import type { LabState } from "@/api/types";
import type { StateInWords } from "@/lib/states";

export const stateOfAction: Record<LabState, StateInWords> = {
  off: { label: "Off", tone: "quiet", definition: "As it is usually." },
  starting: {
    label: "Starting",
    tone: "busy",
    definition: "It is wanted, and not yet in effect at the database.",
  },
  on: { label: "On", tone: "warning", definition: "In effect." },
  gone: {
    label: "Cured",
    tone: "good",
    definition: "It was in effect, and was ended at the database: by a cure, say.",
  },
  ending: {
    label: "Ending",
    tone: "busy",
    definition: "Everything becomes as it was; what is being applied may have to end first.",
  },
};
