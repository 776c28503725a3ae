/** Places where tiles can be dropped: under the pointer, and one after the other for the keyboard. */
import type { Arrangement, Place } from "./arrangement.js";

/** Returns all places in order: in each meld before, between and after its tiles, then a new meld, then the rack. */
export function places({ melds, rack }: Arrangement): Place[] {
  const inMelds = melds.flatMap(({ id, pieces }) =>
    Array.from({ length: pieces.length + 1 }, (_, index): Place => ({ to: "meld", meld: id, index })),
  );
  return [...inMelds, { to: "new" }, { to: "rack", index: rack.length }];
}

/**
 * Returns the place after or before another one (`by` 1 or -1), or the first of the next or previous container. Without
 * another one, that of a new meld.
 */
export function nextPlace<T extends { readonly to: string; readonly meld?: number }>(
  all: readonly T[],
  from: T | undefined,
  by: 1 | -1,
  isContainer: boolean,
): T {
  const container = ({ to, meld }: T) => `${to}${meld ?? ""}`;
  const start = from === undefined ? -1 : all.findIndex((place) => JSON.stringify(place) === JSON.stringify(from));
  const at = (index: number) => all[(index + all.length) % all.length]!;
  if (start < 0) return all.find(({ to }) => to === "new") ?? all[0]!;
  if (!isContainer) return at(start + by);
  const other = all.findIndex((_, i) => container(at(start + i * by)) !== container(all[start]!));
  // In another player's turn the rack is the only container.
  const next = container(at(start + Math.max(0, other) * by));
  return all.find((place) => container(place) === next)!;
}

/** Returns how many boxes come before a point, in reading order. */
export function boxesBefore(boxes: readonly DOMRect[], x: number, y: number): number {
  return boxes.filter((box) => box.bottom < y || (box.top <= y && box.left + box.width / 2 < x)).length;
}
