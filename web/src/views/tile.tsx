/** Tiles: static ones, and those that can be moved. */
import { Tile, tileName } from "rummikub-client";
import { colorOf, t, tileText } from "../i18n/index.js";
import type { Piece } from "../model/arrangement.js";
import { faceOf } from "../model/tiles.js";

function Face({ tile }: { tile: Tile }) {
  const face = faceOf(tile);
  if (tile === Tile.FALSE_JOKER) {
    return (
      <svg class="joker" viewBox="0 0 24 24" aria-hidden="true">
        <path
          d="M12 2l2.6 5.9 6.4.6-4.8 4.3 1.4 6.3-5.6-3.3-5.6 3.3 1.4-6.3L3 8.5l6.4-.6z"
          fill="none"
          stroke="currentColor"
          stroke-width="2"
          stroke-linejoin="round"
        />
        <circle cx="12" cy="11.6" r="2.2" fill="currentColor" />
      </svg>
    );
  }
  if (face === undefined) {
    return (
      <svg class="joker" viewBox="0 0 24 24" aria-hidden="true">
        <circle cx="12" cy="12" r="10" fill="none" stroke="currentColor" stroke-width="2" />
        <circle cx="8.5" cy="10" r="1.6" fill="currentColor" />
        <circle cx="15.5" cy="10" r="1.6" fill="currentColor" />
        <path
          d="M7 14.5c2.5 3.6 7.5 3.6 10 0"
          fill="none"
          stroke="currentColor"
          stroke-width="2"
          stroke-linecap="round"
        />
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
  return `color${faceOf(tile)?.color ?? 0}`;
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
  isSelected: boolean;
  /** Whether Tab reaches the tile; arrows reach the others. */
  isTabStop: boolean;
  onSelect: () => void;
  onFocus: () => void;
}

export function MovableTile(props: MovableTileProps) {
  const { piece, name = tileText(piece.tile), mark = "", isSelected, isTabStop, onSelect, onFocus } = props;
  return (
    <button
      type="button"
      class={`tile movable ${colorClass(piece.tile)} ${mark} ${isSelected ? "selected" : ""}`}
      data-piece={piece.id}
      data-tile={tileName(piece.tile)}
      aria-label={isSelected ? t("selected", { tile: name }) : name}
      title={props.name}
      aria-pressed={isSelected}
      tabIndex={isTabStop ? 0 : -1}
      onClick={onSelect}
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
    <div class="melds" role="list" aria-label={t("table")}>
      {melds.map(({ tiles, isChanged = false }, i) => (
        <StaticMeld key={i} tiles={tiles} isChanged={isChanged} fresh={fresh} />
      ))}
    </div>
  );
}
