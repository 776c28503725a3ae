/**
 * Rummikub tiles as SVG and CSS, and <rummikub-table>, an element that shows a table. README.md explains both.
 *
 * @typedef {"red" | "blue" | "black" | "orange" | "green" | "purple"} TileColor
 * @typedef {"joker" | "false joker" | "double joker" | "mirror" | "color change"} JokerKind
 * @typedef {{readonly color: TileColor, readonly value: number} | {readonly joker: JokerKind}} Tile
 *   A numbered tile with a value from 1 to 13, or a joker.
 * @typedef {(tile: Tile) => string} NameOf
 *   Returns a tile in words, such as "red 7".
 */

/** @type {Readonly<Record<string, TileColor>>} */
const COLORS = { R: "red", B: "blue", K: "black", O: "orange", Y: "orange", G: "green", P: "purple" };
/** @type {Readonly<Record<string, JokerKind>>} */
const JOKERS = { J: "joker", F: "false joker", D: "double joker", M: "mirror", C: "color change" };

/** The symbol of each color, for those who cannot tell colors apart, in a box of 16 by 16. */
const SYMBOLS = {
  red: '<path class="ink" d="M8 14 2.4 8.2C-1 4 4.5 0 8 4.2 11.5 0 17 4 13.6 8.200Z"/>',
  blue: '<path class="ink" d="M8 1 14 8 8 15 2 8Z"/>',
  black: '<path class="ink" d="M8 1C6 4 1 6.5 1.8 10c.6 2.4 3.7 2.6 5.2 1L5.5 15h5L9 11c1.5 1.6 4.6 1.4 5.2-1C15 6.5 10 4 8 1Z"/>',
  orange: '<path class="ink" d="M8 1l2 4.8 5.2.4-4 3.4 1.3 5L8 11.800l-4.5 2.8 1.3-5-4-3.400L6 5.800Z"/>',
  green: '<path class="ink" d="M7 10 5.5 15h5L9 10Z"/><circle class="ink" cx="8" cy="4.5" r="3.3"/><circle class="ink" cx="4.3" cy="9" r="3.3"/><circle class="ink" cx="11.7" cy="9" r="3.3"/>',
  purple: '<path class="ink" d="M8 2 15 14H1Z"/>',
};

/** What is drawn on the jokers, in a box of 24 by 24. */
const DRAWINGS = {
  joker:
    '<circle class="line" cx="12" cy="12" r="10"/><circle class="ink" cx="8.5" cy="10" r="1.6"/><circle class="ink" cx="15.5" cy="10" r="1.6"/><path class="line" d="M7 14.500c2.5 3.6 7.5 3.6 10 0"/>',
  "false joker":
    '<path class="line" d="M12 2l2.6 5.9 6.4.6-4.8 4.3 1.4 6.3-5.6-3.3-5.6 3.3 1.4-6.300L3 8.500l6.4-.6z"/>',
  "double joker":
    '<circle class="line" cx="7.5" cy="7.5" r="6"/><path class="line" d="M4.8 8.500c1.4 2 4 2 5.4 0"/><circle class="line" cx="16.5" cy="16.5" r="6"/><path class="line" d="M13.8 17.500c1.4 2 4 2 5.4 0"/>',
  mirror: '<path class="line" d="M12 2v20M9 7v10L2 12zM15 7v10l7-5z"/>',
  "color change": '<circle class="line" cx="12" cy="12" r="10"/><path class="ink" d="M12 2a10 10 0 0 1 0 20z"/>',
};

/** The styles of tiles: the text of tiles.css, for a shadow root. */
export const css = /** @type {string} */ (`.rummikub-table { display: inline-flex; flex-wrap: wrap; gap: 0.4em 0.9em; vertical-align: middle; }
.rummikub-meld { display: inline-flex; flex-wrap: wrap; gap: 0.12em; }
.rummikub-tile { width: var(--rummikub-tile-width, 1.9em); aspect-ratio: 42 / 56; forced-color-adjust: none; }
.rummikub-tile .body { fill: var(--rummikub-ivory, #fdf8e8); stroke: var(--rummikub-edge, #b9ab80); }
.rummikub-tile .ink { fill: currentcolor; }
.rummikub-tile .line { fill: none; stroke: currentcolor; stroke-width: 2; stroke-linecap: round; stroke-linejoin: round; }
.rummikub-tile text { font: 700 24px system-ui, sans-serif; text-anchor: middle; fill: currentcolor; }
.rummikub-tile.red { color: var(--rummikub-red, #b3261e); }
.rummikub-tile.blue { color: var(--rummikub-blue, #1a4fa3); }
.rummikub-tile.black { color: var(--rummikub-black, #1d1d1d); }
.rummikub-tile.orange { color: var(--rummikub-orange, #a34a00); }
.rummikub-tile.green { color: var(--rummikub-green, #1d6b2b); }
.rummikub-tile.purple { color: var(--rummikub-purple, #6b2fa0); }
.rummikub-tile.joker { color: var(--rummikub-joker, #8a1538); }
`);

/**
 * Returns what a letter or a name stands for.
 *
 * @template {string} T
 * @param {Readonly<Record<string, T>>} names
 * @param {string} word
 * @returns {T | undefined}
 */
function named(names, word) {
  return names[word] ?? Object.values(names).find((name) => name === word.toLowerCase());
}

/**
 * Returns the tile of a text: "R7", "7R" and "TILE_RED_7" for red 7 (R red, B blue, K black, O orange, G green, P purple),
 * "J" for a joker, "F", "D", "M" and "C" for the others. Throws a SyntaxError for any other text.
 *
 * @param {string} text
 * @returns {Tile}
 */
export function parseTile(text) {
  const short = text.toUpperCase().replace(/^TILE_/, "").replace(/_/g, " ");
  const [, word = "", number = ""] = /^([A-Z ]+?) ?(\d*)[A-H]?\*?$/.exec(short.replace(/^(\d+)([A-Z])/, "$2$1")) ?? [];
  const value = Number(number);
  const color = named(COLORS, word);
  const joker = named(JOKERS, word);
  if (color && value >= 1 && value <= 13) return { color, value };
  if (joker && !number) return { joker };
  throw new SyntaxError(`"${text}" is no tile: expected R7, B13, K1, O4, G2, P9 or J`);
}

/**
 * Returns the melds of a text: tiles that spaces or commas separate, and melds that "|" separates; a meld may be in
 * brackets. Throws a SyntaxError for a text that is no tile.
 *
 * @param {string} text
 * @returns {Tile[][]}
 */
export function parseMelds(text) {
  return text
    .split("|")
    .map((meld) => meld.split(/[\s,[\]]+/).filter(Boolean).map(parseTile))
    .filter((meld) => meld.length > 0);
}

/**
 * Returns a tile in English words.
 *
 * @type {NameOf}
 */
export function englishName(tile) {
  return "joker" in tile ? tile.joker : `${tile.color} ${tile.value}`;
}

/**
 * Returns a tile as an SVG element, which tiles.css colors. It says nothing to a screen reader.
 *
 * @param {Tile} tile
 * @returns {string}
 */
export function tileSvg(tile) {
  const isJoker = "joker" in tile;
  const face = isJoker
    ? `<g transform="translate(6.6 13.6) scale(1.2)">${DRAWINGS[tile.joker]}</g>`
    : `<text x="21" y="29">${Number(tile.value)}</text><g transform="translate(14 34) scale(.9)">${SYMBOLS[tile.color]}</g>`;
  const body = '<rect class="body" x="1" y="1" width="40" height="54" rx="6"/>';
  return `<svg class="rummikub-tile ${isJoker ? "joker" : tile.color}" viewBox="0 0 42 56" aria-hidden="true">${body}${face}</svg>`;
}

/**
 * Returns a table as HTML, for a page with tiles.css: a list of melds, each with its tiles in words.
 *
 * @param {readonly (readonly Tile[])[]} melds
 * @param {NameOf} [nameOf]
 * @returns {string}
 */
export function tableHtml(melds, nameOf = englishName) {
  const listed = melds.map((tiles) => {
    const label = escaped(tiles.map(nameOf).join(", "));
    const drawn = tiles.map(tileSvg).join("");
    return `<span role="listitem"><span class="rummikub-meld" role="img" aria-label="${label}">${drawn}</span></span>`;
  });
  return `<span class="rummikub-table" role="list">${listed.join("")}</span>`;
}

/** @param {string} text */
function escaped(text) {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** On a server there is no such class, and the element is not registered. */
const Base = /** @type {typeof HTMLElement} */ (globalThis.HTMLElement ?? class {});
/** @type {CSSStyleSheet | undefined} */
let sheet;

/** Returns the styles for shadow roots; a sheet, because a content security policy may forbid style elements. */
function styles() {
  if (!sheet) {
    sheet = new CSSStyleSheet();
    sheet.replaceSync(css);
  }
  return sheet;
}

/**
 * The element <rummikub-table melds="R7 R8 R9 | K3 B3 O3">. While it is not defined, and if `melds` has a text that is no
 * tile, it shows its content.
 */
export class RummikubTable extends Base {
  static observedAttributes = ["melds"];

  /** @type {NameOf} */
  #nameOf = englishName;
  /** @type {ShadowRoot | undefined} */
  #root;

  /** What the element shows; the attribute `melds` as tiles. Empty if the attribute is none. */
  get tiles() {
    try {
      return parseMelds(this.getAttribute("melds") ?? "");
    } catch {
      return [];
    }
  }

  /** How tiles are called; set it for another language than English. */
  get nameOf() {
    return this.#nameOf;
  }

  set nameOf(nameOf) {
    this.#nameOf = nameOf;
    this.#show();
  }

  connectedCallback() {
    this.#show();
  }

  attributeChangedCallback() {
    this.#show();
  }

  #show() {
    if (!this.isConnected) return;
    if (!this.#root) {
      this.#root = this.attachShadow({ mode: "open" });
      this.#root.adoptedStyleSheets = [styles()];
    }
    const melds = this.tiles;
    this.#root.innerHTML = melds.length > 0 ? tableHtml(melds, this.#nameOf) : "<slot></slot>";
  }
}

if (globalThis.customElements && !customElements.get("rummikub-table")) {
  customElements.define("rummikub-table", RummikubTable);
}
