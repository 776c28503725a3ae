/**
 * Moves tiles by keys. Arrows move the focus; Space chooses, because tiles are buttons; Enter picks up the chosen tiles or
 * the focused one, Shift+Enter the whole meld. While tiles are carried, arrows choose the place, Enter drops, Escape puts
 * back.
 */
import { meldWith, type Place } from "./arrangement.js";
import type { BoardPiece, TableController } from "./controller.js";
import { nextPlace, places } from "./places.js";
import type { BoardTexts } from "./texts.js";
import { parseTile } from "./tiles.js";

export type Direction = "left" | "right" | "up" | "down";

const ARROWS: Readonly<Record<string, Direction>> = {
  ArrowLeft: "left",
  ArrowRight: "right",
  ArrowUp: "up",
  ArrowDown: "down",
};

/** Returns the direction of an arrow key; undefined for other keys. */
export function directionOf({ key }: KeyboardEvent): Direction | undefined {
  return ARROWS[key];
}

/** Whether a key undoes or redoes; undefined for other keys, and while a text is typed. */
export function undoKey(event: KeyboardEvent): "undo" | "redo" | undefined {
  const [target] = event.composedPath();
  const isTyping = target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement;
  if (!(event.ctrlKey || event.metaKey) || isTyping) return undefined;
  const key = event.key.toLowerCase();
  if (key === "z") return event.shiftKey ? "redo" : "undo";
  return key === "y" ? "redo" : undefined;
}

/** Focuses the next tile to the left or right in reading order, or the nearest one above or below. */
export function focusNext(tiles: readonly HTMLElement[], from: HTMLElement, direction: Direction): void {
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

/** A board with its tiles in order of the screen, as far as keys concern it. */
export interface KeyBoard {
  readonly controller: TableController;
  readonly texts: BoardTexts;
  readonly tiles: readonly HTMLElement[];
  /** Says a text to screen readers. */
  readonly say: (text: string) => void;
}

/** Handles a key on a board. Returns whether there was anything to do. */
export function onBoardKey(event: KeyboardEvent, board: KeyBoard): boolean {
  const { controller, tiles } = board;
  const { carried, selection } = controller.state;
  const step = undoKey(event);
  if (step !== undefined) return controller[step](), true;
  if (event.ctrlKey || event.metaKey || event.altKey) return false;
  const direction = directionOf(event);
  const focused = tiles.find((tile) => event.composedPath().includes(tile));
  if (carried !== undefined) {
    if (direction !== undefined) carryOn(board, direction);
    else if (event.key === "Enter" || event.key === " ") board.say(controller.drop() ? board.texts.dropped : board.texts.putBack);
    else if (event.key === "Escape") controller.putBack(), board.say(board.texts.putBack);
    else return false;
    return true;
  }
  if (event.key === "Escape" && selection.length > 0) return controller.clearSelection(), true;
  if (focused === undefined) return false;
  if (direction !== undefined) focusNext(tiles, focused, direction);
  else if (event.key === "Enter") pickUp(board, Number(focused.dataset.piece), event.shiftKey);
  else return false;
  return true;
}

function pickUp(board: KeyBoard, focused: number, isWholeMeld: boolean): void {
  const { controller, texts } = board;
  const { selection, arrangement } = controller.state;
  const meld = isWholeMeld ? meldWith(arrangement, focused)?.pieces.map(({ id }) => id) : undefined;
  const ids = meld ?? (selection.includes(focused) ? selection : [focused]);
  if (!ids.every((id) => controller.mayMove(id))) return;
  const all = placesFor(controller, ids);
  const place = all.find(({ to }) => to === "new") ?? all[0];
  if (place === undefined) return;
  controller.carry(ids, place);
  board.say(`${texts.carrying(inWords(pieces(controller, ids), texts))} ${placeText(board, place)}`);
}

function pieces({ state: { arrangement } }: TableController, ids: readonly number[]): BoardPiece[] {
  const all = [...arrangement.rack, ...arrangement.melds.flatMap((meld) => meld.pieces)];
  return ids.flatMap((id) => all.find((piece) => piece.id === id) ?? []);
}

/** Returns tiles in words. */
export function inWords(pieces: readonly BoardPiece[], texts: BoardTexts): string {
  return pieces.map(({ tile }) => texts.tile(parseTile(tile))).join(", ");
}

function placesFor(controller: TableController, ids: readonly number[]): Place[] {
  const isOfTable = pieces(controller, ids).some(({ origin }) => origin === "table");
  const { arrangement, mayArrange } = controller.state;
  return places(arrangement).filter(({ to }) => (to === "rack" ? !isOfTable : mayArrange));
}

function carryOn(board: KeyBoard, direction: Direction): void {
  const { ids, place } = board.controller.state.carried!;
  const by = direction === "left" || direction === "up" ? -1 : 1;
  const isContainer = direction === "up" || direction === "down";
  const next = nextPlace(placesFor(board.controller, ids), place, by, isContainer);
  board.controller.carry(ids, next);
  board.say(placeText(board, next));
}

/** Returns a place in words. */
export function placeText({ controller, texts }: Pick<KeyBoard, "controller" | "texts">, place: Place): string {
  if (place.to === "new") return texts.newMeld;
  if (place.to === "rack") return texts.placeRack;
  const { melds } = controller.state.arrangement;
  const index = melds.findIndex(({ id }) => id === place.meld);
  const before = melds[index]?.pieces[place.index - 1];
  return before === undefined ? texts.placeStart(index + 1) : texts.placeAfter(index + 1, texts.tile(parseTile(before.tile)));
}
