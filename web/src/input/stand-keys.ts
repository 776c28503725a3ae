/** Keys on the rack of a game of discards: arrows go from slot to slot, and up to the places where a turn ends. */
import type { Target } from "../model/arrangement.js";
import { COLUMNS, SLOTS } from "../model/stand.js";
import type { Direction } from "./keyboard.js";

const STEPS = { left: -1, right: 1, up: -COLUMNS, down: COLUMNS } as const;

/** Returns the place beside another one: above the slots is the player's discard, and above that the indicator. */
export function placeBeside(from: Target | undefined, direction: Direction, mayDiscard: boolean): Target {
  if (from?.to === "finish") return direction === "down" ? { to: "discard" } : from;
  if (from?.to === "discard") {
    if (direction === "down") return { to: "rack", index: COLUMNS - 1 };
    return direction === "up" ? { to: "finish" } : from;
  }
  const index = from?.to === "rack" ? from.index : 0;
  if (direction === "up" && index < COLUMNS && mayDiscard) return { to: "discard" };
  const next = index + STEPS[direction];
  return { to: "rack", index: next < 0 || next >= SLOTS ? index : next };
}
