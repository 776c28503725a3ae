/**
 * Moves tiles by keys. Arrows move the focus; Space selects; Enter picks up the selected or the focused tiles,
 * Shift+Enter the whole meld. While tiles are carried, arrows choose the place, Enter drops, Escape puts back.
 */
import { Tile } from "rummikub-client";
import type { Arranging } from "../control/arranging.js";
import { cellText, slotText, t, tilesList, tileText } from "../i18n/index.js";
import { type Arrangement, meldWith, type Target } from "../model/arrangement.js";
import { freeCell, isGrid, pieceAt } from "../model/grid.js";
import { discardChoices, wildOf } from "../model/discards.js";
import { pieceOf } from "../model/layout.js";
import { isStand, slotOf } from "../model/stand.js";
import { cellBeside, onCellKey } from "./cell-keys.js";
import { focusWhenRendered } from "./focus.js";
import { nextPlace, places } from "./places.js";
import { placeBeside } from "./stand-keys.js";

export type Direction = "left" | "right" | "up" | "down";

/** The keys of the buttons that play, and that draw or end the turn, as aria-keyshortcuts has them. */
export const PLAY_KEYS = "Control+Enter";
export const DRAW_KEYS = "Control+Shift+Enter";

const ARROWS: Readonly<Record<string, Direction>> = {
  ArrowLeft: "left",
  ArrowRight: "right",
  ArrowUp: "up",
  ArrowDown: "down",
};

/** Handles a key on the table or the rack. */
export function onTableKey(event: KeyboardEvent, root: HTMLElement, arranging: Arranging): void {
  if (event.ctrlKey || event.metaKey) return;
  const { carried, selection } = arranging.state.value;
  const direction = ARROWS[event.key];
  const focused = (event.target as Element).closest<HTMLElement>("[data-piece]");
  if (carried !== undefined) {
    if (direction !== undefined) carryOn(arranging, direction);
    else if (event.key === "Enter" || event.key === " ") dropThere(arranging, root);
    else if (event.key === "Escape") letGo(arranging, root, carried.ids[0]);
    else return;
    event.preventDefault();
  } else if (onCellKey(event, direction, root, arranging)) {
    event.preventDefault();
  } else if (focused !== null && direction !== undefined) {
    focusNext(root, focused, direction);
    event.preventDefault();
  } else if (focused !== null && event.key === "Enter") {
    pickUp(arranging, Number(focused.dataset.piece), event.shiftKey);
    event.preventDefault();
  } else if (event.key === "Escape" && selection.length > 0) {
    arranging.clearSelection();
  }
}

/** Handles the keys of undo, redo, and of buttons that state theirs, wherever the focus is. */
export function onShortcut(event: KeyboardEvent, arranging: Arranging): void {
  const isTyping = event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement;
  if (!(event.ctrlKey || event.metaKey) || isTyping) return;
  const key = event.key.toLowerCase();
  if (key === "enter") {
    const name = event.shiftKey ? DRAW_KEYS : PLAY_KEYS;
    document.querySelector<HTMLElement>(`[aria-keyshortcuts="${name}"]`)?.click();
    return event.preventDefault();
  }
  if (key === "z" && !event.shiftKey) arranging.undo();
  else if (key === "y" || key === "z") arranging.redo();
  else return;
  event.preventDefault();
}

function pickUp(arranging: Arranging, focused: number, isWholeMeld: boolean): void {
  const { selection } = arranging.state.value;
  const { arrangement } = arranging;
  const meld = isWholeMeld ? meldWith(arrangement, focused)?.pieces.map(({ id }) => id) : undefined;
  const ids = meld ?? (selection.includes(focused) ? selection : [focused]);
  if (!arranging.mayArrange && ids.some((id) => pieceOf(arrangement, id)?.origin === "table")) return;
  const start = firstPlace(arranging, ids);
  arranging.carry(ids, start);
  const tiles = tilesList(ids.flatMap((id) => pieceOf(arrangement, id)?.tile ?? []));
  arranging.state.say(`${t("carry", { tiles })} ${placeText(arrangement, start)}`);
}

function firstPlace(arranging: Arranging, ids: readonly number[]): Target | undefined {
  const { arrangement, state } = arranging;
  if (isGrid(arrangement) && arranging.mayArrange) return { to: "cell", ...freeCell(arrangement, state.value.cursor) };
  if (isStand(arrangement)) return { to: "rack", index: Math.max(0, slotOf(arrangement, ids[0])) };
  const all = placesFor(arranging, ids);
  return all.find(({ to }) => to === "new") ?? all[0];
}

function placesFor(arranging: Arranging, ids: readonly number[]): Target[] {
  const { arrangement } = arranging;
  const isOfTable = ids.some((id) => pieceOf(arrangement, id)?.origin === "table");
  return places(arrangement).filter(({ to }) => (to === "rack" ? !isOfTable : arranging.mayArrange));
}

function carryOn(arranging: Arranging, direction: Direction): void {
  const { carried } = arranging.state.value;
  if (carried === undefined) return;
  const { arrangement } = arranging;
  const by = direction === "left" || direction === "up" ? -1 : 1;
  const isContainer = direction === "up" || direction === "down";
  let target: Target;
  if (carried.target?.to === "cell") target = cellBeside(carried.target, direction);
  else if (isStand(arrangement))
    target = placeBeside(arrangement, carried.target, direction, {
      ...discardChoices(arranging.state.game),
      okey: wildTile(arranging),
    });
  else target = nextPlace(placesFor(arranging, carried.ids), carried.target, by, isContainer);
  arranging.carry(carried.ids, target);
  arranging.state.say(placeText(arrangement, target));
}

function wildTile({ state }: Arranging): Tile | undefined {
  const { discardBoard } = state.game;
  return discardBoard && wildOf(discardBoard);
}

function isJokerAt(arrangement: Arrangement, piece: number): boolean {
  return pieceOf(arrangement, piece)?.tile === Tile.JOKER;
}

function dropThere(arranging: Arranging, root: HTMLElement): void {
  const { carried } = arranging.state.value;
  const [id] = carried?.ids ?? [];
  const isLeaving = carried?.target?.to === "discard" || carried?.target?.to === "finish";
  arranging.drop();
  arranging.state.say(t("dropped"));
  // The focus would be lost with a tile that leaves the rack.
  focusPiece(root, isLeaving ? arranging.arrangement.rack.find((piece) => piece.id !== id)?.id : id);
}

function letGo(arranging: Arranging, root: HTMLElement, id: number | undefined): void {
  arranging.putBack();
  arranging.state.say(t("putBack"));
  focusPiece(root, id);
}

/** Focuses a tile as it is rendered next: one that moves to another meld is a new element. */
function focusPiece(root: HTMLElement, id: number | undefined): void {
  focusWhenRendered(() => root.querySelector<HTMLElement>(`[data-piece="${id}"]`));
}

/** Returns a place in words. */
export function placeText(arrangement: Arrangement, target: Target | undefined): string {
  if (target === undefined) return "";
  const numberOf = (meld: number | undefined) => arrangement.melds.findIndex(({ id }) => id === meld) + 1;
  if (target.to === "new") return t("placeNew");
  if (target.to === "rack" && isStand(arrangement)) {
    const tile = arrangement.slots[target.index]?.tile;
    return `${tile === undefined ? "" : tileText(tile)} ${slotText(arrangement, target.index)}`.trim();
  }
  if (target.to === "rack") return t("placeRack");
  if (target.to === "discard") return t("placeDiscard");
  if (target.to === "finish") return t("placeFinish");
  if (target.to === "cell") {
    const tile = isGrid(arrangement) ? pieceAt(arrangement, target)?.tile : undefined;
    return `${tile === undefined ? "" : tileText(tile)} ${cellText(target)}`.trim();
  }
  if (target.to === "wild") return t(isJokerAt(arrangement, target.piece) ? "placeJoker" : "placeWild", { number: numberOf(meldWith(arrangement, target.piece)?.id) });
  const number = numberOf(target.meld);
  const pieces = arrangement.melds[number - 1]?.pieces ?? [];
  return meldPlaceText(number, pieces.map(({ tile }) => tile), target.index);
}

/** Returns a place before or behind a tile of a meld in words. */
export function meldPlaceText(number: number, all: readonly Tile[], index: number): string {
  const [tiles, before] = [tilesList(all), all[index - 1]];
  return before === undefined ? t("placeStart", { number, tiles }) : t("placeAfter", { number, tiles, tile: tileText(before) });
}

/** Focuses the next tile to the left or right in reading order, or the nearest one above or below. */
function focusNext(root: HTMLElement, from: HTMLElement, direction: Direction): void {
  const tiles = [...root.querySelectorAll<HTMLElement>("[data-piece]")];
  if (direction === "left" || direction === "right") {
    tiles[tiles.indexOf(from) + (direction === "left" ? -1 : 1)]?.focus();
    return;
  }
  const box = from.getBoundingClientRect();
  const isBeyond = (other: DOMRect) => (direction === "up" ? other.bottom <= box.top + 2 : other.top >= box.bottom - 2);
  const distance = (other: DOMRect) => Math.abs(other.top - box.top) * 3 + Math.abs(other.left - box.left);
  const beyond = tiles.map((tile) => ({ tile, box: tile.getBoundingClientRect() })).filter(({ box }) => isBeyond(box));
  beyond.sort((a, b) => distance(a.box) - distance(b.box));
  beyond[0]?.tile.focus();
}
