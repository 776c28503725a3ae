/** The middle of a game of discards: the pool, the indicator, and each player's discards at a corner of the table. */
import { type HandPart, Tile } from "rummikub-client";
import type { ComponentChildren } from "preact";
import { t, tileText } from "../i18n/index.js";
import type { Corner } from "../model/discards.js";
import { StaticTile } from "./tile.js";

/** Returns the name of a tile that is special under an okey; undefined for other tiles. */
export function okeyName(tile: Tile, okey: Tile | undefined): string | undefined {
  if (okey === undefined || okey === Tile.JOKER) return undefined;
  if (tile === okey) return t("okeyTile", { tile: tileText(tile) });
  return tile === Tile.FALSE_JOKER ? t("falseJokerAs", { tile: tileText(okey) }) : undefined;
}

/** A tile of a game, in which there may be a wild one: an okey, or a joker. */
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
  /** The tile turned face up; unset in a game with jokers. */
  indicator: Tile;
  /** The wild tile. */
  okey: Tile;
  /** The tile laid face up that a player may take; unset if there is none. */
  trump?: Tile;
  poolCount: number;
  piles: readonly ShownPile[];
  /** The discard that ended the round, which lies on the indicator. */
  lastTile?: Tile | undefined;
  onPool?: Deed | undefined;
  /** What a click on the indicator does, or on the place of the last discard where there is none. */
  onIndicator?: Deed | undefined;
  onTrump?: Deed | undefined;
  /** What a click on the discards of a seat does. */
  onPile?: (seat: number) => Deed | undefined;
  /** The seat whose place takes a discard that is dropped. */
  dropSeat?: number | undefined;
  /** The place over which a tile is carried. */
  target?: string | undefined;
  /** Whether a tile that is dropped there finishes. */
  mayFinish?: boolean;
  /** The melds on the table, if the game has one. */
  children?: ComponentChildren;
}

export function Board(props: BoardProps) {
  const { okey, trump = Tile.UNSPECIFIED, poolCount, piles, onPool, onTrump, onPile, dropSeat, target, children } = props;
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
        {trump !== Tile.UNSPECIFIED && (
          <span class="captioned">
            <span aria-hidden="true">{t("trump")}</span>
            <Place {...(onTrump && { deed: onTrump })} place="trump">
              <StaticTile tile={trump} name={t("trumpTile", { tile: tileText(trump) })} />
            </Place>
          </span>
        )}
        <Indicator {...props} />
        {okey !== Tile.JOKER && (
          <p class="okey-name">
            {t("okey")} <OkeyTile tile={okey} okey={okey} />
          </p>
        )}
      </div>
      {children}
    </section>
  );
}

/** The indicator, with the discard that ended the round; in a game with jokers the place of such a discard, if any. */
function Indicator({ indicator, okey, lastTile, onIndicator, target, mayFinish = false }: BoardProps) {
  const hasIndicator = indicator !== Tile.UNSPECIFIED;
  if (!hasIndicator && !mayFinish && lastTile === undefined) return null;
  return (
    <span class={`indicator captioned ${target === "finish" ? "is-target" : ""}`} data-drop={mayFinish ? "finish" : undefined}>
      {!hasIndicator && <span aria-hidden="true">{t("finish")}</span>}
      <Place {...(onIndicator && { deed: onIndicator })} place="indicator">
        {hasIndicator && <StaticTile tile={indicator} name={t("indicator", { tile: tileText(indicator) })} />}
        {!hasIndicator && lastTile === undefined && <span class="tile space" role="img" aria-label={t("lastPlace")} />}
        {lastTile !== undefined && <OkeyTile tile={lastTile} okey={okey} mark={hasIndicator ? "on-top" : ""} />}
      </Place>
    </span>
  );
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
