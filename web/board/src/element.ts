/** The element <rummikub-board>: it shows a TableController, and turns what a player does into calls of it. */
import { css } from "../../tiles/index.js";
import { type Place, piecesOfMelds } from "./arrangement.js";
import type { BoardMeld, BoardPiece, TableController, TableState } from "./controller.js";
import { element, fill, Kept, mark, set } from "./dom.js";
import { fittingPlaces } from "./fitting.js";
import type { Judgment, MeldJudgment } from "./judgment.js";
import { inWords, onBoardKey, placeText } from "./keyboard.js";
import { type Intended, LocalTable, type OnJudge, type Position } from "./local-table.js";
import { appear, cornerOf, cornersIn, idOf, moveFrom, type Point, tilesIn } from "./motion.js";
import { boxesBefore } from "./places.js";
import { followPointer, type Hands, type Scrolls } from "./pointer.js";
import { STYLE } from "./style.js";
import { type BoardTexts, ENGLISH } from "./texts.js";
import { drawing, faceOf, parseTile, type TableLike, type TileLike } from "./tiles.js";
import { followZoom, ZOOM_STEP, zoomed } from "./zoom.js";

const DURATION_MS = 260;
const AGAIN_MS = 400;
/** With more tiles than this a table is dense, or full. */
const DENSE = 16;
const FULL = 44;
const PROPERTIES = ["table", "rack", "readonly", "texts", "judge", "controller"] as const;

/** On a server there is no such class, and the element is not registered. */
const Base = (globalThis.HTMLElement ?? class {}) as typeof HTMLElement;
let sheet: CSSStyleSheet | undefined;
let boards = 0;

/** Returns the styles; a sheet, because a content security policy may forbid style elements. */
function styles(): CSSStyleSheet {
  if (sheet === undefined) {
    sheet = new CSSStyleSheet();
    sheet.replaceSync(css + STYLE);
  }
  return sheet;
}

export class RummikubBoard extends Base {
  static observedAttributes = ["table", "rack", "readonly"];

  readonly #local = new LocalTable({ onChange: (detail) => this.#changed(detail) });
  #controller: TableController = this.#local;
  #texts = ENGLISH;
  #position: Position = {};
  #isShowing = false;
  #view: View | undefined;

  /** The melds at the start of the turn: a text such as "R7 R8 R9 | K3 B3 O3", or lists of tiles. */
  get table(): TableLike {
    return this.#position.table ?? [];
  }

  set table(table: TableLike) {
    this.#show({ table });
  }

  /** The tiles of the player at the start of the turn. */
  get rack(): string | readonly TileLike[] {
    return this.#position.rack ?? [];
  }

  set rack(rack: string | readonly TileLike[]) {
    this.#show({ rack });
  }

  /** Whether the table only shows. Tiles of the rack can be moved on it. */
  get readonly(): boolean {
    return !(this.#position.mayArrange ?? true);
  }

  set readonly(isReadonly: boolean) {
    this.#show({ mayArrange: !isReadonly });
  }

  /** Judges how the tiles lie, to mark melds. */
  get judge(): OnJudge | undefined {
    return this.#local.onJudge;
  }

  set judge(judge: OnJudge | undefined) {
    this.#local.onJudge = judge;
  }

  /** The texts that the board shows and says. Those that are not given are English. */
  get texts(): BoardTexts {
    return this.#texts;
  }

  set texts(texts: Partial<BoardTexts>) {
    this.#texts = { ...ENGLISH, ...texts };
    this.#view?.render();
  }

  /** What is shown: a LocalTable of `table`, `rack` and `readonly`, unless another one is set. */
  get controller(): TableController {
    return this.#controller;
  }

  set controller(controller: TableController) {
    this.#controller = controller;
    if (this.#view !== undefined) {
      this.#view.end();
      this.#view = new View(this, this.shadowRoot!);
    }
  }

  /** How the player wants the tiles to lie now, if no other controller is set. */
  get intended(): Intended {
    this.#take();
    return this.#local.intended;
  }

  /** Moves the tiles that the last position has moved or added once more. */
  showAgain(): void {
    this.#view?.showAgain();
  }

  connectedCallback(): void {
    for (const name of PROPERTIES) {
      // Set before the element was defined.
      if (!Object.hasOwn(this, name)) continue;
      const value: unknown = this[name];
      delete (this as Partial<this>)[name];
      Object.assign(this, { [name]: value });
    }
    this.#take();
    if (this.shadowRoot === null) this.attachShadow({ mode: "open" }).adoptedStyleSheets = [styles()];
    this.#view = new View(this, this.shadowRoot!);
  }

  disconnectedCallback(): void {
    this.#view?.end();
    this.#view = undefined;
  }

  attributeChangedCallback(name: string, _: string | null, value: string | null): void {
    this.#show(name === "readonly" ? { mayArrange: value === null } : { [name]: value ?? "" });
  }

  /** Shows a position after all of its parts are set: a tile that moves from the rack to the table keeps its id. */
  #show(part: Position): void {
    this.#position = { ...this.#position, ...part };
    if (this.#isShowing) return;
    this.#isShowing = true;
    queueMicrotask(() => this.#take());
  }

  #take(): void {
    if (!this.#isShowing) return;
    this.#isShowing = false;
    try {
      this.#local.show(this.#position);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      console.error(`rummikub-board: ${error.message}`);
    }
  }

  #changed(detail: Intended): void {
    this.dispatchEvent(new CustomEvent("change", { detail, bubbles: true, composed: true }));
  }
}

declare global {
  interface HTMLElementTagNameMap {
    "rummikub-board": RummikubBoard;
  }
}

/** The elements of a board that is in a document, and what it listens to. */
class View implements Hands<Place> {
  readonly #host: RummikubBoard;
  readonly #root: ShadowRoot;
  readonly #controller: TableController;
  readonly #ends: (() => void)[];
  readonly #listening = new AbortController();
  readonly #prefix = `rummikub-board-${++boards}`;
  readonly #tiles = new Kept<HTMLElement>();
  readonly #others = new Kept<HTMLElement>();
  readonly #melds = element("div", "melds");
  readonly #table = element("div", "table", { role: "group", "data-drop": "new", "aria-describedby": `${this.#prefix}-keys` });
  readonly #rack = element("div", "rack", { role: "group", "data-drop": "rack", "aria-describedby": `${this.#prefix}-keys` });
  readonly #said = element("p", "said", { role: "status" });
  readonly #message = element("p", "message none", { role: "status" });
  readonly #keys = element("p", "none", { id: `${this.#prefix}-keys` });
  readonly #actions = element("div", "actions", { role: "group" });
  readonly #slot = document.createElement("slot");
  /** The pieces that had the focus, the last one first: Tab reaches the first of the table and of the rack. */
  #stops: readonly number[] = [];
  #zoom = 1;
  /** Shown in place of the judgment until a tile is moved. */
  #notice: string | undefined;
  #shown: TableState | undefined;
  /** The pieces that were dropped: they are already where they lie. */
  #dropped: readonly number[] = [];
  /** Where tiles came from that the last position has moved, seen from the corner of the table; undefined for new ones. */
  #origins = new Map<number, Point | undefined>();

  constructor(host: RummikubBoard, root: ShadowRoot) {
    this.#host = host;
    this.#root = root;
    this.#controller = host.controller;
    this.#slot.name = "actions";
    const board = element("div", "board");
    board.append(this.#table, this.#message, this.#rack, this.#actions, this.#said, this.#keys);
    root.replaceChildren(board);
    this.render();
    const { signal } = this.#listening;
    board.addEventListener("click", (event) => this.#onClick(event), { signal });
    board.addEventListener("dblclick", (event) => this.#onDoubleClick(event), { signal });
    board.addEventListener("focusin", ({ target }) => this.#onFocus(target as HTMLElement), { signal });
    board.addEventListener("keydown", (event) => this.#onKey(event), { signal });
    this.#ends = [
      this.#controller.subscribe(() => this.render()),
      followPointer<Place>(board, this),
      followZoom(this.#table, (by) => this.#enlarge(by)),
    ];
  }

  end(): void {
    this.#listening.abort();
    for (const end of this.#ends) end();
  }

  render(): void {
    const { state } = this.#controller;
    const before = this.#shown === undefined || this.#shown.arrangement === state.arrangement ? undefined : cornersIn(this.#root);
    const focused = this.#root.activeElement as HTMLElement | null;
    this.#renderTable(state);
    this.#renderRack(state);
    this.#renderActions(state);
    const { texts } = this.#host;
    if (this.#shown?.arrangement !== state.arrangement) this.#notice = undefined;
    const text = this.#notice ?? state.judgment?.text;
    mark(this.#message, "message", text === undefined && "none");
    this.#message.textContent = text ?? "";
    if (this.#keys.textContent !== texts.keys) this.#keys.textContent = texts.keys;
    this.#tiles.sweep();
    this.#others.sweep();
    if (focused !== null && focused !== this.#root.activeElement) this.#focusAgain(focused, state);
    const isPosition = this.#shown !== undefined && this.#shown.fresh !== state.fresh;
    this.#shown = state;
    if (before !== undefined) this.#animate(before, isPosition);
  }

  /** Focuses an element that was moved; instead of one that is gone, the tile that had the focus last. */
  #focusAgain(focused: HTMLElement, state: TableState): void {
    const ids = [...piecesOfMelds(state.arrangement), ...state.arrangement.rack].map(({ id }) => id);
    const stop = this.#stops.find((id) => ids.includes(id));
    const tile = tilesIn(this.#root).find((other) => idOf(other) === stop);
    (focused.isConnected ? focused : tile)?.focus({ preventScroll: true });
  }

  #animate(before: ReadonlyMap<number, Point>, isPosition: boolean): void {
    const corner = cornerOf(this.#table);
    if (isPosition) this.#origins.clear();
    for (const tile of tilesIn(this.#root)) {
      const id = idOf(tile);
      const from = before.get(id);
      if (from !== undefined && this.#dropped.includes(id)) continue;
      const isMoving = from === undefined ? appear(tile, DURATION_MS) : moveFrom(tile, from, DURATION_MS);
      if (isPosition && isMoving) this.#origins.set(id, from && { x: from.x - corner.x, y: from.y - corner.y });
    }
    this.#dropped = [];
    if (isPosition) this.#renderActions(this.#controller.state);
  }

  showAgain(): void {
    const corner = cornerOf(this.#table);
    for (const tile of tilesIn(this.#root)) {
      const from = this.#origins.get(idOf(tile));
      if (from !== undefined) moveFrom(tile, { x: corner.x + from.x, y: corner.y + from.y }, AGAIN_MS);
      else if (this.#origins.has(idOf(tile))) appear(tile, AGAIN_MS);
    }
  }

  #renderTable(state: TableState): void {
    const { texts } = this.#host;
    const { arrangement, carried, mayArrange, selection } = state;
    const isPlacing = mayArrange && selection.length > 0 && carried === undefined;
    const count = piecesOfMelds(arrangement).length;
    set(this.#table, { "aria-label": texts.table });
    this.#table.style.setProperty("--zoom", String(this.#zoom));
    const empty = this.#others.get("empty", () => element("p", "empty"));
    empty.textContent = texts.emptyTable;
    const melds = arrangement.melds.map((meld, i) => this.#meld(meld, i, state, isPlacing));
    fill(this.#melds, melds.length > 0 ? melds : [empty]);
    const place = this.#place("new", "new", texts.newMeld);
    mark(place, "place", "new", carried?.place?.to === "new" && "target");
    place.textContent = texts.newMeld;
    const zoom = this.#others.get("zoom", () => element("span", "zoom"));
    fill(zoom, [this.#button("zoom-out", "−", texts.zoomOut), this.#button("zoom-in", "+", texts.zoomIn)]);
    fill(this.#table, [this.#melds, (isPlacing || carried?.place?.to === "new") && place, zoom]);
    const isScrolling = this.#melds.scrollHeight > this.#melds.clientHeight + 1;
    mark(this.#melds, "melds", count > FULL ? "full" : count > DENSE && "dense", isScrolling && "scrolls");
    // What scrolls has to be reached by keys, too.
    set(this.#melds, { tabindex: isScrolling ? "0" : undefined, role: isScrolling ? "group" : undefined, "aria-label": isScrolling ? texts.table : undefined });
  }

  #meld(meld: BoardMeld, index: number, state: TableState, isPlacing: boolean): HTMLElement {
    const { texts } = this.#host;
    const { carried, judgment, mayArrange, selection, start } = state;
    const { id, pieces } = meld;
    const number = index + 1;
    const target = carried?.place?.to === "meld" && carried.place.meld === id ? carried.place : undefined;
    const isChanged = start.melds.find((other) => other.id === id)?.pieces !== pieces || target !== undefined;
    const judged = shownMark(judgment, carried?.preview?.melds ?? state.arrangement.melds, id, isChanged);
    const group = this.#others.get(`meld${id}`, () => element("div", "meld", { role: "group", "data-drop": "meld", "data-meld": String(id) }));
    const verdict = judged === undefined ? "" : `. ${judged.isLegal ? texts.legal : texts.illegal}`;
    mark(group, "meld", target && "target", judged && (judged.isLegal ? "legal" : "illegal"));
    set(group, {
      "aria-label": texts.meld(number, inWords(pieces, texts)) + verdict,
      "aria-describedby": judged?.text === undefined ? undefined : `${this.#prefix}-fault-${id}`,
    });
    const isMovedHere = pieces.some((piece) => selection.includes(piece.id));
    const tiles = pieces.map((piece, i) => {
      // Places at fault are those of the preview, while tiles are carried.
      const isFaulty = carried?.preview === undefined && (judged?.faulty?.includes(i) ?? false);
      return this.#tile(piece, state, firstOf(this.#stops, pieces, state.arrangement), isFaulty);
    });
    const children: (Node | false)[] = [mayArrange && this.#grip(id), ...tiles];
    if (target !== undefined) children.splice(target.index + 1, 0, this.#others.get("caret", () => element("span", "caret")));
    if (isPlacing && !isMovedHere) {
      const last = { to: "meld", meld: id, index: pieces.length } as const;
      children.push(this.#place(`meld:${id}:0`, "first", texts.placeStart(number)));
      children.push(this.#place(`meld:${id}:${pieces.length}`, "last", placeText({ controller: this.#controller, texts }, last)));
    }
    if (judged !== undefined) {
      const sign = this.#others.get(`verdict${id}`, () => element("span", "verdict", { "aria-hidden": "true" }));
      sign.textContent = judged.isLegal ? "✓" : "✗";
      children.push(sign);
    }
    if (judged?.text !== undefined) {
      const fault = this.#others.get(`fault${id}`, () => element("p", "fault", { id: `${this.#prefix}-fault-${id}` }));
      if (fault.textContent !== judged.text) fault.textContent = judged.text;
      children.push(fault);
    }
    fill(group, children);
    return group;
  }

  #renderRack(state: TableState): void {
    const { texts } = this.#host;
    const { carried, selection, mayArrange, arrangement } = state;
    const { rack } = arrangement;
    const index = carried?.place?.to === "rack" ? carried.place.index : undefined;
    const stop = this.#stops.find((id) => rack.some((piece) => piece.id === id)) ?? rack[0]?.id;
    const tiles: Node[] = rack.map((piece) => this.#tile(piece, state, stop, false));
    if (index !== undefined) tiles.splice(index, 0, this.#others.get("caret", () => element("span", "caret")));
    const laid = piecesOfMelds(arrangement).filter(({ id }) => selection.includes(id));
    const mayReturn = laid.length > 0 && laid.every(({ origin }) => origin !== "table");
    const place = this.#place(`rack:${rack.length}`, "back", texts.placeRack);
    fill(this.#rack, [...tiles, mayReturn && carried === undefined && place]);
    mark(this.#rack, "rack", index !== undefined && "target", rack.length === 0 && !mayArrange && "none");
    set(this.#rack, { "aria-label": texts.rack });
  }

  #renderActions({ mayArrange, mayUndo, mayRedo, arrangement }: TableState): void {
    const { texts } = this.#host;
    const hasRack = arrangement.rack.length > 0;
    set(this.#actions, { "aria-label": texts.actions });
    fill(this.#actions, [
      mayArrange && this.#button("undo", texts.undo, undefined, !mayUndo),
      mayArrange && this.#button("redo", texts.redo, undefined, !mayRedo),
      mayArrange && this.#button("reset", texts.reset, undefined, !mayUndo),
      hasRack && this.#button("color", texts.sortByColor),
      hasRack && this.#button("value", texts.sortByValue),
      hasRack && this.#button("melds", texts.showMelds),
      this.#origins.size > 0 && this.#button("again", texts.showAgain),
      this.#slot,
    ]);
  }

  #tile(piece: BoardPiece, state: TableState, stop: number | undefined, isFaulty: boolean): HTMLElement {
    const { id, tile, origin } = piece;
    const { texts } = this.#host;
    const made = this.#tiles.get(`${id}${tile}`, () => {
      const button = element("button", "tile", { type: "button", "data-piece": String(id), "data-tile": tile });
      button.innerHTML = drawing(tile);
      return button;
    });
    const isOnRack = state.arrangement.rack.includes(piece);
    const isChosen = state.selection.includes(id);
    mark(
      made,
      "tile",
      !this.#controller.mayMove(id) && "fixed",
      isFaulty ? "faulty" : !isOnRack && origin !== "table" ? "own" : state.fresh.has(id) && "fresh",
      isChosen && "chosen",
      state.carried?.ids.includes(id) && "carried",
    );
    set(made, {
      "aria-label": texts.tile(parseTile(tile)),
      "aria-pressed": String(isChosen),
      tabindex: id === stop ? "0" : "-1",
    });
    return made;
  }

  #grip(id: number): HTMLElement {
    return this.#others.get(`grip${id}`, () => {
      const grip = element("span", "grip", { "data-grip": String(id), "aria-hidden": "true" });
      grip.textContent = "⠿";
      return grip;
    });
  }

  #place(place: string, side: string, label: string): HTMLElement {
    const made = this.#others.get(`place${place.replace(/^rack.*/, "rack")}${side}`, () => element("button", `place ${side}`, { type: "button" }));
    set(made, { "data-place": place, "aria-label": label });
    made.textContent = "+";
    return made;
  }

  #button(action: string, text: string, label?: string, isDisabled = false): HTMLElement {
    const made = this.#others.get(action, () => element("button", "button", { type: "button", "data-action": action })) as HTMLButtonElement;
    if (made.textContent !== text) made.textContent = text;
    set(made, { "aria-label": label });
    made.disabled = isDisabled;
    return made;
  }

  #onClick(event: Event): void {
    const target = (event.target as Element).closest<HTMLElement>("[data-piece],[data-place],[data-action]");
    const { piece, place, action } = target?.dataset ?? {};
    const { selection } = this.#controller.state;
    if (piece !== undefined) this.#controller.select(Number(piece));
    else if (place !== undefined) {
      this.#stops = [...selection.slice(0, 1), ...this.#stops];
      this.#controller.move(selection, placeFrom(place));
    } else if (action === "zoom-in" || action === "zoom-out") this.#enlarge(action === "zoom-in" ? ZOOM_STEP : 1 / ZOOM_STEP);
    else if (action === "color" || action === "value") this.#controller.sort(action);
    else if (action === "melds") this.#controller.showMelds();
    else if (action === "again") this.showAgain();
    else if (action === "undo" || action === "redo" || action === "reset") this.#controller[action]();
  }

  /** Lays a tile of the rack that is tapped twice where it fits, if there is one such place. */
  #onDoubleClick({ target }: Event): void {
    const id = Number((target as Element).closest<HTMLElement>(".rack [data-piece]")?.dataset.piece);
    const { arrangement, mayArrange } = this.#controller.state;
    const tile = arrangement.rack.find((piece) => piece.id === id)?.tile;
    if (tile === undefined || !mayArrange) return;
    const [place, ...others] = fittingPlaces(arrangement, tile, faceOf);
    if (place !== undefined && others.length === 0) this.#controller.move([id], place);
    else {
      const { texts } = this.#host;
      this.#notice = texts.fitsAt(texts.tile(parseTile(tile)), place === undefined ? 0 : others.length + 1);
      this.render();
    }
  }

  #onFocus({ dataset: { piece } }: HTMLElement): void {
    if (piece === undefined || this.#stops[0] === Number(piece)) return;
    this.#stops = [Number(piece), ...this.#stops.filter((id) => id !== Number(piece))].slice(0, 8);
    this.render();
  }

  #onKey(event: KeyboardEvent): void {
    const board = {
      controller: this.#controller,
      texts: this.#host.texts,
      tiles: tilesIn(this.#root),
      say: (text: string) => (this.#said.textContent = text),
    };
    if (onBoardKey(event, board)) event.preventDefault();
  }

  #enlarge(by: number): void {
    this.#zoom = zoomed(this.#zoom, by);
    this.render();
  }

  movedBy({ dataset: { grip, piece } }: HTMLElement): readonly number[] {
    const { arrangement, selection } = this.#controller.state;
    const meld = arrangement.melds.find(({ id }) => grip !== undefined && id === Number(grip));
    const id = Number(piece);
    const ids = meld?.pieces.map((one) => one.id) ?? (selection.includes(id) ? selection : [id]);
    return ids.every((one) => this.#controller.mayMove(one)) ? ids : [];
  }

  placeAt(x: number, y: number): Place | undefined {
    const container = this.#root.elementFromPoint(x, y)?.closest<HTMLElement>("[data-drop]");
    if (container?.getRootNode() !== this.#root) return undefined;
    const index = () => boxesBefore(tilesIn(container).map((tile) => tile.getBoundingClientRect()), x, y);
    if (container.dataset.drop === "rack") return { to: "rack", index: index() };
    if (!this.#controller.state.mayArrange) return undefined;
    return container.dataset.drop === "meld" ? { to: "meld", meld: Number(container.dataset.meld), index: index() } : { to: "new" };
  }

  carry(ids: readonly number[], place: Place | undefined): void {
    this.#controller.carry(ids, place);
  }

  drop(): void {
    const { carried, arrangement } = this.#controller.state;
    this.#dropped = carried?.ids ?? [];
    if (this.#controller.drop()) return;
    this.#dropped = [];
    const isOfTable = piecesOfMelds(arrangement).some(({ id, origin }) => origin === "table" && carried?.ids.includes(id));
    if (carried?.place?.to === "rack" && isOfTable) this.#said.textContent = this.#host.texts.staysOnTable;
  }

  putBack(): void {
    this.#controller.putBack();
  }

  /** A table that fits its place does not scroll. */
  scrolls({ pointerType }: PointerEvent, source: HTMLElement): Scrolls {
    return pointerType === "touch" && source.closest(".scrolls") !== null ? "all" : "none";
  }

  scrollers(): Element[] {
    return [this.#melds];
  }

  /** Melds are never wider than the table. */
  scrollsAcross(): boolean {
    return false;
  }

  ghost(ids: readonly number[], source: HTMLElement): HTMLElement {
    const tiles = tilesIn(this.#root).filter((tile) => ids.includes(idOf(tile)));
    const copies = tiles.map((tile) => tile.cloneNode(true) as HTMLElement);
    for (const copy of copies) copy.removeAttribute("data-piece");
    // A finger hides what is under it, so the tiles hang above it.
    const isAbove = matchMedia("(pointer: coarse)").matches && source.dataset.grip === undefined;
    const made = element("div", isAbove ? "ghost above" : "ghost", { "aria-hidden": "true", popover: "manual" });
    made.append(...copies);
    this.#root.append(made);
    // In the top layer it is where the pointer is, whatever is around the board.
    made.showPopover?.();
    return made;
  }

  onDrag(isDragging: boolean): void {
    this.#host.toggleAttribute("data-dragging", isDragging);
  }
}

/** Returns the id that Tab reaches on the table, if one of these pieces has it. */
function firstOf(stops: readonly number[], pieces: readonly BoardPiece[], { melds }: TableState["arrangement"]): number | undefined {
  const all = melds.flatMap((meld) => meld.pieces);
  const stop = stops.find((id) => all.some((piece) => piece.id === id)) ?? all[0]?.id;
  return pieces.some(({ id }) => id === stop) ? stop : undefined;
}

/** Returns the judgment of a meld that is shown. A legal meld is no play while the table as a whole lacks something. */
function shownMark(judgment: Judgment | undefined, melds: readonly BoardMeld[], id: number, isChanged: boolean): MeldJudgment | undefined {
  const mark = judgment?.melds?.[melds.findIndex((meld) => meld.id === id)];
  return mark?.isLegal && (!isChanged || judgment?.text !== undefined) ? undefined : mark;
}

/** Returns a place of its text, such as "meld:3:0". */
function placeFrom(text: string): Place {
  const [to, first = "0", second = "0"] = text.split(":");
  if (to === "meld") return { to, meld: Number(first), index: Number(second) };
  return to === "rack" ? { to, index: Number(first) } : { to: "new" };
}

// At the end: elements of the page are upgraded at once.
if (globalThis.customElements && !customElements.get("rummikub-board")) {
  customElements.define("rummikub-board", RummikubBoard);
}
