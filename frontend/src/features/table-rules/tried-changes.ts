// Changes that somebody writes down to try rules on: a list like `changes` in the REST API.
import type { TriedChange } from "@/api/types";

const TEXTS = /"(?:[^"\\]|\\.)*"/g;
const LONG_NUMBER = /\d[\d.]{15,}/;

/** With the text's fault, in words. The shape of each change is the API's to judge. */
export function triedChanges(text: string): { changes: TriedChange[]; fault?: string } {
  if (text.trim() === "") return { changes: [] };
  // JavaScript would round it.
  if (LONG_NUMBER.test(text.replace(TEXTS, "")))
    return wrong("Write numbers of more than 15 digits in quotes.");
  try {
    const changes: unknown = JSON.parse(text);
    return Array.isArray(changes) ? { changes } : wrong("Write a list: [ ... ].");
  } catch (error) {
    return wrong(`This is not JSON: ${(error as Error).message}`);
  }
}

const wrong = (fault: string) => ({ changes: [], fault });
