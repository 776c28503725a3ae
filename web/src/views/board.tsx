/** The middle of a game of discards: the pool, the indicator, and each player's discards at a corner of the table. */
import { type HandPart, Tile } from "rummikub-client";
import type { ComponentChildren } from "preact";
import { t, tileText } from "../i18n/index.js";
import type { Corner } from "../model/discards.js";
import { StaticTile } from "./tile.js";

/** Returns the name of a tile that is special under an okey; undefined for other tiles. */
export function okeyName(tile: Tile, okey: Tile | undefined): string | undefined {
  if (okey === undefined) return undefined;
  if (tile === okey) return t("okeyTile", { tile: tileText(tile) });
  return tile === Tile.FALSE_JOKER ? t("falseJokerAs", { tile: tileText(okey) }) : undefined;
}

/** A tile of a game, in which there may be an okey. */
export function OkeyTile({ tile, okey, mark = "" }: { tile: Tile; okey: Tile | undefined; mark?: string }) {
  return <StaticTile tile={tile} name={okeyName(tile, okey)} mark={`${mark} ${tile === okey ? "wild" : ""}`} />;
}

export interface ShownPile {
  readonly seat: number;
  readonly name: string;
  readonly corner: Corner;
  readonly newest: Tile | undefined;
  readonly count: number;
  /** Whether the newest tile was discarded last. */
  readonly isFresh: boolean;
}

/** What a place of the table does when it is clicked. */
export interface Deed {
  readonly label: string;
  readonly act: () => void;
}

interface BoardProps {
  indicator: Tile;
  okey: Tile;
  poolCount: number;
  piles: readonly ShownPile[];
  /** The discard that ended the round, which lies on the indicator. */
  lastTile?: Tile | undefined;
  onPool?: Deed | undefined;
  onIndicator?: Deed | undefined;
  /** What a click on the discards of a seat does. */
  onPile?: (seat: number) => Deed | undefined;
  /** The seat whose place takes a discard that is dropped. */
  dropSeat?: number | undefined;
  /** The place over which a tile is carried. */
  target?: string | undefined;
  /** Whether a tile that is dropped on the indicator finishes. */
  mayFinish?: boolean;
  /** The melds on the table of 101 Okey. */
  children?: ComponentChildren;
}

export function Board(props: BoardProps) {
  const { indicator, okey, poolCount, piles, lastTile, onPool, onIndicator, onPile, dropSeat, target, mayFinish, children } = props;
  return (
    <section class={`felt board ${children === undefined ? "" : "with-melds"}`} aria-label={t("table")}>
      {piles.map((pile) => (
        <Pile
          key={pile.seat}
          pile={pile}
          okey={okey}
          deed={onPile?.(pile.seat)}
          isDrop={pile.seat === dropSeat}
          isTarget={pile.seat === dropSeat && target === "discard"}
        />
      ))}
      <div class="middle">
        <Place {...(onPool && { deed: onPool })} place="pool">
          <span class="tile back" data-pool role="img" aria-label={t("poolLabel", { count: poolCount })}>
            <span aria-hidden="true">{poolCount}</span>
          </span>
        </Place>
        <span
          class={`indicator ${target === "finish" ? "is-target" : ""}`}
          data-drop={mayFinish ? "finish" : undefined}
        >
          <Place {...(onIndicator && { deed: onIndicator })} place="indicator">
            <StaticTile tile={indicator} name={t("indicator", { tile: tileText(indicator) })} />
            {lastTile !== undefined && <OkeyTile tile={lastTile} okey={okey} mark="on-top" />}
          </Place>
        </span>
        <p class="okey-name">
          {t("okey")} <OkeyTile tile={okey} okey={okey} />
        </p>
      </div>
      {children}
    </section>
  );
}

/** Returns who finished a hand, and how. */
export function finishText(name: string, { tile, isPairs }: { tile: Tile; isPairs: boolean }, okey: Tile): string {
  const text = t(isPairs ? "finishedPairs" : "finishedMelds", { name });
  return tile === okey ? `${text} ${t("finishedOkey")}` : text;
}

/** The melds or pairs of a hand that ended a round. */
export function FinishedHand({ hand, okey, text }: { hand: readonly HandPart[]; okey: Tile; text: string }) {
  return (
    <>
      <p>{text}</p>
      <OkeyMelds parts={hand} okey={okey} label={text} />
    </>
  );
}

interface MeldsProps {
  parts: readonly HandPart[];
  okey: Tile;
  label: string;
  /** The tiles that are marked: of equal ones, those laid last. */
  fresh?: readonly Tile[];
}

/** Melds or pairs that cannot be changed. */
export function OkeyMelds({ parts, okey, label, fresh = [] }: MeldsProps) {
  const left = [...fresh];
  const isFresh = (tile: Tile) => {
    const index = left.indexOf(tile);
    if (index >= 0) left.splice(index, 1);
    return index >= 0;
  };
  const marked = [...parts].reverse().map(({ tiles }) => tiles.map((tile) => ({ tile, mark: isFresh(tile) ? "fresh" : "" })));
  return (
    <div class="melds" role="list" aria-label={label}>
      {marked.reverse().map((tiles, i) => (
        <div key={i} class="meld static" role="listitem">
          {tiles.map(({ tile, mark }, at) => (
            <OkeyTile key={at} tile={tile} okey={okey} mark={mark} />
          ))}
        </div>
      ))}
    </div>
  );
}

interface PileProps {
  pile: ShownPile;
  okey: Tile;
  deed: Deed | undefined;
  isDrop: boolean;
  isTarget: boolean;
}

function Pile({ pile: { name, corner, newest, count, isFresh }, okey, deed, isDrop, isTarget }: PileProps) {
  const below = count - 1;
  return (
    <div
      class={`pile ${corner} ${isTarget ? "is-target" : ""}`}
      role="group"
      aria-label={t("discardsOf", { name })}
      data-drop={isDrop ? "discard" : undefined}
    >
      <span class="pile-name" aria-hidden="true">
        {name}
      </span>
      <Place {...(deed && { deed })} place="pile">
        {newest === undefined ? (
          <span class="tile space" role="img" aria-label={t("noDiscard")} />
        ) : (
          <OkeyTile tile={newest} okey={okey} mark={isFresh ? "fresh" : ""} />
        )}
      </Place>
      <span class="pile-count">
        {below > 0 && (
          <span role="img" aria-label={t("below", { count: below })}>
            +{below}
          </span>
        )}
      </span>
    </div>
  );
}

function Place({ deed, place, children }: { deed?: Deed; place: string; children: ComponentChildren }) {
  if (deed === undefined) return <span class="place">{children}</span>;
  return (
    <button type="button" class="place plain" data-place={place} aria-label={deed.label} title={deed.label} onClick={deed.act}>
      {children}
    </button>
  );
}
