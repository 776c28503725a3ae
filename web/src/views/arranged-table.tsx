/** The melds on the table: the player's own arrangement, or the draft of the player who has the turn. */
import { type Game, JokersDeclaration, MeldKind, type SavedDraft, Tile } from "rummikub-client";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { fittingPlaces } from "rummikub-board/model";
import type { Arranging } from "../control/arranging.js";
import { useStore } from "../control/store.js";
import { language, t, tilesList, tileText, violationText } from "../i18n/index.js";
import { meldPlaceText } from "../input/keyboard.js";
import type { ArrangedMeld, Arrangement, Piece, Target } from "../model/arrangement.js";
import { pieceOf } from "../model/layout.js";
import type { MeldMark } from "../model/marks.js";
import { faceOf, isSpecialJoker, mayFitBothKinds, tileOf, without } from "../model/tiles.js";
import { meldingOf, playerOf } from "../model/turn.js";
import { okeyName } from "./board.js";
import { memo } from "./memo.js";
import { ShownTable } from "./shown-table.js";
import { MovableTile } from "./tile.js";
import { useZoom, ZoomButtons } from "./zoom.js";

/** The tile that Tab reaches, of the table and of the rack each: the one that had the focus last. */
export interface TabStop {
  readonly ids: readonly number[];
  readonly set: (id: number) => void;
}

export function useTabStop(): TabStop {
  const [ids, setIds] = useState<readonly number[]>([]);
  const set = (id: number) => setIds((before) => [id, ...before.filter((other) => other !== id)].slice(0, 8));
  return useMemo(() => ({ ids, set }), [ids]);
}

/** Returns the id of the tile among these that Tab reaches. */
export function tabStopOf(tabStop: TabStop, pieces: readonly { id: number }[]): number | undefined {
  return tabStop.ids.find((id) => pieces.some((piece) => piece.id === id)) ?? pieces[0]?.id;
}

/** With more tiles than this a table is dense, or full. */
const DENSE = 16;
const FULL = 44;

const NONE: readonly number[] = [];

interface TableProps {
  arranging: Arranging;
  tabStop: TabStop;
  /** The wild tile of a game of discards, where tiles of the table stay where they are. */
  okey?: Tile;
}

export function ArrangedTable({ arranging, tabStop, okey }: TableProps) {
  const { history, selection, carried, judgment, fresh } = useStore(arranging.state);
  const arrangement = history.present;
  const start = history.past[0] ?? arrangement;
  const mayPlay = arranging.mayArrange;
  const isJudged = judgment !== undefined && judgment.arrangement === (carried?.preview ?? arrangement);
  const marks = isJudged ? judgment.marks.melds : undefined;
  // A legal meld is no play while the whole lacks something, such as points of the initial meld.
  const isTableLegal = judgment?.marks.table.length === 0;
  const stop = tabStopOf(
    tabStop,
    arrangement.melds.flatMap(({ pieces }) => pieces),
  );
  const isPlacing = mayPlay && selection.length > 0 && carried === undefined;
  const felt = useRef<HTMLElement>(null);
  const [zoom, enlarge] = useZoom(felt);
  const [single, ...others] = carried?.ids ?? [];
  const lifted = single !== undefined && others.length === 0 && okey === undefined ? pieceOf(arrangement, single) : undefined;
  const fitting = lifted === undefined ? [] : fittingPlaces(arrangement, lifted.tile, faceOf).map((place) => place.to === "meld" && place.meld);
  const count = arrangement.melds.reduce((sum, { pieces }) => sum + pieces.length, 0);
  return (
    <section
      ref={felt}
      class={`${okey === undefined ? "felt" : "laid"} ${densityOf(count)}`}
      style={{ "--zoom": zoom }}
      aria-label={t(okey === undefined ? "table" : "meldsOnTable")}
      data-drop={mayPlay ? "new" : undefined}
    >
      {arrangement.melds.length === 0 && carried === undefined && (
        <p class="empty">{t(okey === undefined ? "emptyTable" : "noMelds")}</p>
      )}
      <div class="melds">
        {arrangement.melds.map((meld, i) => {
          const isChanged = start.melds.find(({ id }) => id === meld.id)?.pieces !== meld.pieces;
          const isTarget = isTargetIn(meld, carried?.target);
          const mark = marks?.get(meld.id);
          return (
            <MeldView
              key={meld.id}
              language={language.value.code}
              arrangement={arrangement}
              meld={meld}
              number={i + 1}
              arranging={arranging}
              mark={mark !== undefined && (mark.isLegal ? isTableLegal && (isChanged || isTarget) : true) ? mark : undefined}
              target={isTarget ? carried?.target : undefined}
              okey={okey}
              carriedIds={carried?.ids ?? NONE}
              selection={selection}
              stop={stop}
              tabStop={tabStop}
              isPlacing={isPlacing}
              mayMove={mayPlay}
              isChanged={isChanged}
              fits={fitting.includes(meld.id)}
              fresh={fresh}
            />
          );
        })}
      </div>
      <div class="felt-foot">
        {(carried?.target?.to === "new" || isPlacing) && (
          <NewMeld
            mark={carried?.preview && marks?.get(carried.preview.melds.at(-1)!.id)}
            onPlace={() => arranging.move(selection, { to: "new" })}
          />
        )}
        {okey === undefined && <ZoomButtons onZoom={enlarge} />}
      </div>
    </section>
  );
}

/** Returns the class of a table with so many tiles: with more of them they are smaller on a small screen. */
function densityOf(count: number): string {
  return count > FULL ? "full" : count > DENSE ? "dense" : "";
}

/** Whether tiles are carried over a meld, or over a wild tile in it. */
function isTargetIn({ id, pieces }: ArrangedMeld, target: Target | undefined): boolean {
  if (target?.to === "wild") return pieces.some((piece) => piece.id === target.piece);
  return target?.to === "meld" && target.meld === id;
}

interface MeldProps {
  /** The texts are of this language. */
  language: string;
  /** Where the meld lies: it says which tiles may be moved. */
  arrangement: Arrangement;
  meld: ArrangedMeld;
  number: number;
  arranging: Arranging;
  mark: MeldMark | undefined;
  target: Target | undefined;
  okey: Tile | undefined;
  carriedIds: readonly number[];
  selection: readonly number[];
  stop: number | undefined;
  tabStop: TabStop;
  isPlacing: boolean;
  mayMove: boolean;
  isChanged: boolean;
  /** Whether the tile that is carried extends the meld. */
  fits: boolean;
  fresh: ReadonlySet<number>;
}

/** A movement over one meld must not render all of them. */
const MeldView = memo(function MeldView(props: MeldProps) {
  const { meld, number, arranging, mark, target, okey, selection, stop, tabStop, isPlacing, mayMove, carriedIds } = props;
  const tiles = meld.pieces.map(({ tile }) => tile);
  const name = t("meldOf", { number, tiles: tilesList(tiles) });
  const verdict = mark === undefined ? "" : mark.isLegal ? t("meldLegal") : t("meldIllegal");
  const state = mark === undefined ? "" : mark.isLegal ? "legal" : "illegal";
  const index = target?.to === "meld" ? target.index : -1;
  const violation = useTextKept(
    mark === undefined || mark.isLegal ? "" : [...new Set(mark.violations.map(violationText))].join(" "),
    carriedIds.length > 0,
  );
  const isMovedHere = selection.some((id) => meld.pieces.some((piece) => piece.id === id));
  const isMovable = mayMove && meld.pieces.every(({ id }) => arranging.mayMove(id));
  const place = (at: number) => arranging.move(selection, { to: "meld", meld: meld.id, index: at });
  return (
    <div
      class={`meld ${state} ${props.fits ? "fits" : ""}`}
      role="group"
      aria-label={`${name}. ${verdict}`}
      data-drop={mayMove ? "meld" : undefined}
      data-meld={meld.id}
    >
      <div class="meld-tiles">
        {(isMovable || okey === undefined) && (
          // It has its place in the turns of others, too: melds must not move when a turn begins or ends.
          <span class="grip" data-grip={isMovable ? meld.id : undefined} title={t("drag")} aria-hidden="true">
            ⠿
          </span>
        )}
        {isPlacing && !isMovedHere && <Slot label={meldPlaceText(number, tiles, 0)} side="first" onPlace={() => place(0)} />}
        {meld.pieces.flatMap((piece, i) => {
          const isFaulty = mark?.pieces.has(piece.id) ?? false;
          const isNew = piece.origin !== "table";
          const isWild = piece.tile === okey;
          const isTakeable = isWild && mayMove && !isNew;
          const forTile = isTakeable && isPlacing ? selectedTile(arranging) : undefined;
          const take = () => arranging.move(selection, { to: "wild", piece: piece.id });
          return [
            index === i && <span key="caret" class="caret" />,
            <MovableTile
              key={piece.id}
              piece={piece}
              name={forTile === undefined ? (jokerName(meld, piece) ?? okeyName(piece.tile, okey)) : t(okey === Tile.JOKER ? "takeJoker" : "takeWild", { number, tile: tileText(forTile) })}
              drop={isTakeable ? "wild" : undefined}
              mark={[
                isFaulty && "faulty",
                isNew && "mine",
                isWild && "wild",
                ((!isNew && props.fresh.has(piece.id)) || (target?.to === "wild" && target.piece === piece.id)) && "fresh",
                carriedIds.includes(piece.id) && "carried",
              ]
                .filter(Boolean)
                .join(" ")}
              isSelected={selection.includes(piece.id)}
              isTabStop={piece.id === stop}
              onSelect={forTile === undefined ? () => mayMove && arranging.mayMove(piece.id) && arranging.select(piece.id) : take}
              onFocus={() => tabStop.set(piece.id)}
            />,
          ];
        })}
        {index === meld.pieces.length && <span class="caret" />}
        {isPlacing && !isMovedHere && (
          <Slot
            label={meldPlaceText(number, tiles, tiles.length)}
            side="last"
            onPlace={() => place(tiles.length)}
          />
        )}
        {mark !== undefined && (
          <span class="verdict" aria-hidden="true">
            {mark.isLegal ? "✓" : "✗"}
          </span>
        )}
      </div>
      {violation.text !== "" && <Violation {...violation} />}
      {mayMove && props.isChanged && mayNeedDeclaration(tiles, arranging) && (
        <Declaration meld={meld} arranging={arranging} />
      )}
    </div>
  );
});

/** Returns what a joker of a meld stands for in words, as it was declared or as the service has read it. */
function jokerName({ pieces, declaredFaces }: ArrangedMeld, { id }: Piece): string | undefined {
  const jokers = pieces.filter(({ tile }) => tile === Tile.JOKER);
  const face = jokers.length === declaredFaces.length ? declaredFaces[jokers.findIndex((joker) => joker.id === id)] : undefined;
  return face === undefined ? undefined : t("jokerAs", { faces: tileText(face) });
}

/** Returns the tile that is selected; undefined if several are. */
export function selectedTile({ arrangement, state }: Arranging): Tile | undefined {
  const [id, ...others] = state.value.selection;
  return id === undefined || others.length > 0 ? undefined : pieceOf(arrangement, id)?.tile;
}

/** Returns a text, or while `isKept` the last one, so that its place stays when it is outdated. */
function useTextKept(text: string, isKept: boolean): { text: string; isOutdated: boolean } {
  const last = useRef("");
  if (text !== "" || !isKept) last.current = text;
  return { text: last.current, isOutdated: text === "" };
}

/** What is wrong with a meld, below it or above it, where the table shows it whole. */
function Violation({ text, isOutdated }: { text: string; isOutdated: boolean }) {
  const element = useRef<HTMLParagraphElement>(null);
  const place = () => {
    if (element.current === null) return;
    const { classList, style } = element.current;
    classList.remove("over");
    style.translate = "";
    const view = element.current.closest(".melds")!.getBoundingClientRect();
    const { right, bottom } = element.current.getBoundingClientRect();
    classList.toggle("over", bottom > view.bottom);
    style.translate = `${Math.min(0, view.right - right)}px`;
  };
  useLayoutEffect(place);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(place);
    observer.observe(element.current!.closest(".melds")!);
    return () => observer.disconnect();
  }, []);
  return (
    <p ref={element} class={`violation ${isOutdated ? "outdated" : ""}`}>
      {text}
    </p>
  );
}

/** A place at an end of a meld, laid over it: what a player has in view must not move when a tile is chosen. */
function Slot({ label, side, onPlace }: { label: string; side: "first" | "last"; onPlace: () => void }) {
  return (
    <button type="button" class={`slot ${side}`} aria-label={label} onClick={onPlace}>
      +
    </button>
  );
}

function NewMeld({ mark, onPlace }: { mark: MeldMark | undefined; onPlace: () => void }) {
  return (
    <button
      type="button"
      class={`new-meld ${mark === undefined ? "" : mark.isLegal ? "legal" : "illegal"}`}
      data-drop="new"
      onClick={onPlace}
    >
      {t("newMeld")}
    </button>
  );
}

/**
 * Whether the rules may want to know what jokers stand for, or one numbered tile and jokers fit both kinds. In a game of
 * discards nothing is declared.
 */
function mayNeedDeclaration(tiles: readonly Tile[], arranging: Arranging): boolean {
  const ruleset = meldingOf(arranging.state.value.game);
  if (arranging.state.value.game?.discardBoard !== undefined) return false;
  const isByPlace = ruleset?.melds?.jokersDeclaration === JokersDeclaration.POSITIONAL;
  return mayFitBothKinds(tiles) || (!isByPlace && tiles.includes(Tile.JOKER));
}

/**
 * What a meld with jokers is, and what they stand for, where a player wants or has to say it. Beside a special joker only
 * the kind is a choice.
 */
function Declaration({ meld, arranging }: { meld: ArrangedMeld; arranging: Arranging }) {
  const isSpecial = meld.pieces.some(({ tile }) => isSpecialJoker(tile));
  const jokers = isSpecial ? 0 : meld.pieces.filter(({ tile }) => tile === Tile.JOKER).length;
  const faces = meld.pieces.flatMap(({ tile }) => faceOf(tile) ?? []);
  const colors = meldingOf(arranging.state.value.game)?.tiles?.colors ?? 4;
  const [value] = faces.map((face) => face.value);
  const missing =
    value === undefined
      ? []
      : Array.from({ length: colors }, (_, i) => i + 1)
          .filter((color) => !faces.some((face) => face.color === color))
          .map((color) => tileOf(color, value));
  const setFace = (joker: number, face: Tile | undefined) => {
    if (face === undefined) return arranging.declare(meld.id, meld.kind, []);
    const others = without(missing, [face]).left;
    const declared = Array.from({ length: jokers }, (_, i) =>
      i === joker ? face : (meld.declaredFaces[i] ?? others[i] ?? face),
    );
    arranging.declare(meld.id, MeldKind.GROUP, declared);
  };
  return (
    <details class="declaration">
      <summary>{t("jokerStandsFor")}</summary>
      <select
        aria-label={t("meldKind")}
        value={meld.kind}
        onChange={(e) => arranging.declare(meld.id, Number(e.currentTarget.value), [])}
      >
        <option value={MeldKind.UNSPECIFIED}>{t("either")}</option>
        <option value={MeldKind.RUN}>{t("run")}</option>
        <option value={MeldKind.GROUP}>{t("group")}</option>
      </select>
      {meld.kind === MeldKind.GROUP &&
        Array.from({ length: jokers }, (_, joker) => (
          <select
            key={joker}
            aria-label={t("jokerStandsFor")}
            value={meld.declaredFaces[joker] ?? ""}
            onChange={(e) => setFace(joker, e.currentTarget.value === "" ? undefined : Number(e.currentTarget.value))}
          >
            <option value="">{t("byPlace")}</option>
            {missing.map((face) => (
              <option key={face} value={face}>
                {tileText(face)}
              </option>
            ))}
          </select>
        ))}
    </details>
  );
}

/** The draft of another player: the table as they arrange it now. */
export function OthersTable({ game, draft }: { game: Game; draft: SavedDraft }) {
  const name = playerOf(game, draft.seat)?.name ?? "";
  const onTable = (game.table?.melds ?? []).flatMap(({ tiles }) => tiles);
  const melds = draft.table?.melds ?? [];
  const tiles = melds.flatMap((meld) => meld.tiles);
  const fresh = without(tiles, onTable).left;
  return (
    <section class={`felt others-draft ${densityOf(tiles.length)}`} aria-label={t("table")} data-draft={draft.number}>
      <p class="draft-label">{t(draft.isLegal ? "othersDraftLegal" : "othersDraft", { name })}</p>
      <ShownTable table={draft.table} before={game.table} fresh={fresh} />
    </section>
  );
}
