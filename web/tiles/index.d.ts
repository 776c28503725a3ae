/**
 * Returns the tile of a text: "R7", "7R" and "TILE_RED_7" for red 7 (R red, B blue, K black, O orange, G green, P purple),
 * "J" for a joker, "F", "D", "M" and "C" for the others. Throws a SyntaxError for any other text.
 *
 * @param {string} text
 * @returns {Tile}
 */
export function parseTile(text: string): Tile;
/**
 * Returns the melds of a text: tiles that spaces or commas separate, and melds that "|" separates; a meld may be in
 * brackets. Throws a SyntaxError for a text that is no tile.
 *
 * @param {string} text
 * @returns {Tile[][]}
 */
export function parseMelds(text: string): Tile[][];
export function englishName(tile: Tile): string;
/**
 * Returns a tile as an SVG element, which tiles.css colors. It says nothing to a screen reader.
 *
 * @param {Tile} tile
 * @returns {string}
 */
export function tileSvg(tile: Tile): string;
/**
 * Returns a table as HTML, for a page with tiles.css: a list of melds, each with its tiles in words.
 *
 * @param {readonly (readonly Tile[])[]} melds
 * @param {NameOf} [nameOf]
 * @returns {string}
 */
export function tableHtml(melds: readonly (readonly Tile[])[], nameOf?: NameOf): string;
/** The styles of tiles: the text of tiles.css, for a shadow root. */
export const css: string;
/**
 * The element <rummikub-table melds="R7 R8 R9 | K3 B3 O3">. While it is not defined, and if `melds` has a text that is no
 * tile, it shows its content.
 */
export class RummikubTable extends HTMLElement {
    static observedAttributes: string[];
    /** What the element shows; the attribute `melds` as tiles. Empty if the attribute is none. */
    get tiles(): Tile[][];
    set nameOf(nameOf: NameOf);
    /** How tiles are called; set it for another language than English. */
    get nameOf(): NameOf;
    connectedCallback(): void;
    attributeChangedCallback(): void;
    #private;
}
/**
 * Rummikub tiles as SVG and CSS, and <rummikub-table>, an element that shows a table. README.md explains both.
 */
export type TileColor = "red" | "blue" | "black" | "orange" | "green" | "purple";
/**
 * Rummikub tiles as SVG and CSS, and <rummikub-table>, an element that shows a table. README.md explains both.
 */
export type JokerKind = "joker" | "false joker" | "double joker" | "mirror" | "color change";
/**
 * A numbered tile with a value from 1 to 13, or a joker.
 */
export type Tile = {
    readonly color: TileColor;
    readonly value: number;
} | {
    readonly joker: JokerKind;
};
/**
 * Returns a tile in words, such as "red 7".
 */
export type NameOf = (tile: Tile) => string;
