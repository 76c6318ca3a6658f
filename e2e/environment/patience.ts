// How much longer than usual everything waits: scripts/slow_machine.sh sets E2E_PATIENCE. Limits that are the assertion itself
// grow too: with half a core the stack takes the browser's time as well.
const FACTOR = Number(process.env.E2E_PATIENCE || 1);

/** A time that two cores do not need, in any unit, as long as this machine needs it. */
export const patience = (time: number): number => time * FACTOR;
