/** Tiles: static ones, and those that can be moved. */
import type { JSX } from "preact";
import { Tile, TileColor, tileName } from "rummikub-client";
import { colorOf, t, tileText } from "../i18n/index.js";
import type { Piece } from "../model/arrangement.js";
import { faceOf } from "../model/tiles.js";

/** What is drawn on the jokers, in a box of 24 by 24. */
const DRAWINGS: { readonly [tile in Tile]?: JSX.Element } = {
  [Tile.JOKER]: (
    <>
      <circle cx="12" cy="12" r="10" />
      <circle class="filled" cx="8.5" cy="10" r="1.6" />
      <circle class="filled" cx="15.5" cy="10" r="1.6" />
      <path d="M7 14.5c2.5 3.6 7.5 3.6 10 0" />
    </>
  ),
  [Tile.FALSE_JOKER]: (
    <>
      <path d="M12 2l2.6 5.9 6.4.6-4.8 4.3 1.4 6.3-5.6-3.3-5.6 3.3 1.4-6.3L3 8.5l6.4-.6z" />
      <circle class="filled" cx="12" cy="11.6" r="2.2" />
    </>
  ),
  [Tile.DOUBLE_JOKER]: (
    <>
      <circle cx="7.5" cy="7.5" r="6" />
      <path d="M4.8 8.5c1.4 2 4 2 5.4 0" />
      <circle cx="16.5" cy="16.5" r="6" />
      <path d="M13.8 17.5c1.4 2 4 2 5.4 0" />
    </>
  ),
  [Tile.MIRROR]: <path d="M12 2v20M9 7v10L2 12zM15 7v10l7-5z" />,
  [Tile.COLOR_CHANGE]: (
    <>
      <circle cx="12" cy="12" r="10" />
      <path class="filled" d="M12 2a10 10 0 0 1 0 20z" />
    </>
  ),
};

/** The colors of the special jokers. */
const JOKER_COLORS: { readonly [tile in Tile]?: TileColor } = {
  [Tile.DOUBLE_JOKER]: TileColor.BLUE,
  [Tile.MIRROR]: TileColor.ORANGE,
  [Tile.COLOR_CHANGE]: TileColor.BLACK,
};

function Face({ tile }: { tile: Tile }) {
  const face = faceOf(tile);
  if (face === undefined) {
    return (
      <svg class="joker" viewBox="0 0 24 24" aria-hidden="true">
        {DRAWINGS[tile]}
      </svg>
    );
  }
  return (
    <>
      <span class="value" aria-hidden="true">
        {face.value}
      </span>
      <span class="symbol" aria-hidden="true">
        {colorOf(face.color).symbol}
      </span>
    </>
  );
}

/** Returns the class of a tile's color. */
function colorClass(tile: Tile): string {
  return `color${faceOf(tile)?.color ?? JOKER_COLORS[tile] ?? 0}`;
}

export function StaticTile({ tile, name, mark = "" }: { tile: Tile; name?: string | undefined; mark?: string }) {
  return (
    <span
      class={`tile ${colorClass(tile)} ${mark}`}
      role="img"
      aria-label={name ?? tileText(tile)}
      title={name}
      data-tile={tileName(tile)}
    >
      <Face tile={tile} />
    </span>
  );
}

export interface MovableTileProps {
  piece: Piece;
  /** The tile in words. */
  name?: string | undefined;
  mark?: string;
  /** What a tile that is dropped on this one does; see `targetAt`. */
  drop?: string | undefined;
  isSelected: boolean;
  /** Whether Tab reaches the tile; arrows reach the others. */
  isTabStop: boolean;
  onSelect: () => void;
  onDoubleTap?: () => void;
  onFocus: () => void;
}

export function MovableTile(props: MovableTileProps) {
  const { piece, name = tileText(piece.tile), mark = "", isSelected, isTabStop, onSelect, onFocus } = props;
  return (
    <button
      type="button"
      class={`tile movable ${colorClass(piece.tile)} ${mark} ${isSelected ? "selected" : ""}`}
      data-piece={piece.id}
      data-drop={props.drop}
      data-tile={tileName(piece.tile)}
      aria-label={isSelected ? t("selected", { tile: name }) : name}
      title={props.name}
      aria-pressed={isSelected}
      tabIndex={isTabStop ? 0 : -1}
      onClick={onSelect}
      onDblClick={props.onDoubleTap}
      onFocus={onFocus}
    >
      <Face tile={piece.tile} />
    </button>
  );
}

export function StaticMeld({
  tiles,
  isChanged = false,
  fresh = [],
}: {
  tiles: readonly Tile[];
  isChanged?: boolean;
  fresh?: readonly Tile[];
}) {
  const left = [...fresh];
  return (
    <div class={`meld static ${isChanged ? "changed" : ""}`} role="listitem">
      {tiles.map((tile, i) => {
        const index = left.indexOf(tile);
        if (index >= 0) left.splice(index, 1);
        return <StaticTile key={i} tile={tile} mark={index >= 0 ? "fresh" : ""} />;
      })}
    </div>
  );
}

/** A table that cannot be changed. `fresh` tiles are marked. */
export function StaticTable({
  melds,
  fresh = [],
}: {
  melds: readonly { tiles: readonly Tile[]; isChanged?: boolean }[];
  fresh?: readonly Tile[];
}) {
  return (
    <div class="melds" role="list" aria-label={t("table")} tabIndex={0}>
      {melds.map(({ tiles, isChanged = false }, i) => (
        <StaticMeld key={i} tiles={tiles} isChanged={isChanged} fresh={fresh} />
      ))}
    </div>
  );
}
