/**
 * Keys on the rack of a game of discards: arrows go from slot to slot, and up to the player's discards. Above them is
 * the place to finish, where the rules have one, and the table, where melds lie on one.
 */
import type { Tile } from "rummikub-client";
import type { Target } from "../model/arrangement.js";
import type { DiscardChoices } from "../model/discards.js";
import type { Stand } from "../model/stand.js";
import type { Direction } from "./keyboard.js";
import { nextPlace, places } from "./places.js";

/** Returns the place beside another one. */
export function placeBeside(stand: Stand, from: Target | undefined, direction: Direction, may: Choices): Target {
  const { columns, slots } = stand;
  if (from?.to === "finish") {
    if (direction === "down") return { to: "discard" };
    return direction === "up" && may.mayLay ? { to: "new" } : from;
  }
  if (from?.to === "discard") {
    if (direction === "down") return { to: "rack", index: columns - 1 };
    if (direction !== "up") return from;
    return may.mayFinish ? { to: "finish" } : may.mayLay ? { to: "new" } : from;
  }
  if (from !== undefined && from.to !== "rack") return onTable(stand, from, direction, may);
  const index = from?.index ?? 0;
  if (direction === "up" && index < columns && may.mayDiscard) return { to: "discard" };
  const next = index + { left: -1, right: 1, up: -columns, down: columns }[direction];
  return { to: "rack", index: next < 0 || next >= slots.length ? index : next };
}

type Choices = Pick<DiscardChoices, "mayDiscard" | "mayFinish" | "mayLay"> & { readonly okey?: Tile | undefined };

/**
 * Left and right go through the places of the table, up and down from meld to meld; below a new meld is the place to
 * finish, or the discard.
 */
function onTable(stand: Stand, from: Target, direction: Direction, { mayFinish, okey }: Choices): Target {
  if (from.to === "new" && direction === "down") return { to: mayFinish ? "finish" : "discard" };
  const all = places(stand).flatMap((place): Target[] => {
    if (place.to === "rack") return [];
    const next = place.to === "meld" ? stand.melds.find(({ id }) => id === place.meld)?.pieces[place.index] : undefined;
    return next?.origin === "table" && next.tile === okey ? [place, { to: "wild", piece: next.id }] : [place];
  });
  return nextPlace(all, from, direction === "left" || direction === "up" ? -1 : 1, direction === "up" || direction === "down");
}
