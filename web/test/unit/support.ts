import { setTimeout as sleep } from "node:timers/promises";

/** Waits until a condition holds. */
export async function until(condition: () => boolean): Promise<void> {
  const deadline = Date.now() + 5_000;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`after 5 s it does not hold: ${condition}`);
    await sleep(5);
  }
}
