/** The table of a game of discards, the rack of slots, and what the player may do there. */
// Files that are loaded later share all of the page's start, so that it stays one chunk.
import "./app.js";
import { type DiscardBoard, type Game, HintTier, type Tile } from "rummikub-client";
import type { GameSession } from "../control/game-session.js";
import { useStore } from "../control/store.js";
import { slotText, t, tileText } from "../i18n/index.js";
import {
  cornersOf,
  discardChoices,
  isWithTable,
  namedHandsOf,
  newestOf,
  openingOf,
  seatBefore,
  wildOf,
} from "../model/discards.js";
import { placed } from "../model/layout.js";
import { COLUMNS, isStand } from "../model/stand.js";
import { playerOf } from "../model/turn.js";
import { ArrangedTable, selectedTile, type TabStop, tabStopOf } from "./arranged-table.js";
import { Board, type Deed, okeyName, type ShownPile } from "./board.js";
import { HintMenu } from "./hint-menu.js";
import { NamedHands } from "./named-hands.js";
import { MovableTile } from "./tile.js";

interface DiscardProps {
  game: Game;
  session: GameSession;
  board: DiscardBoard;
}

export function DiscardTable({ game, session, board, tabStop }: DiscardProps & { tabStop: TabStop }) {
  const { isBusy, connection, carried, selection } = useStore(session.state);
  const { arranging, acting } = session;
  const may = discardChoices(game);
  const wild = wildOf(board);
  const isReady = !isBusy && connection === "open";
  const chosen = selectedTile(arranging);
  const deed = (isOpen: boolean, label: string, act: () => unknown): Deed | undefined =>
    isOpen && isReady ? { label, act: () => void act() } : undefined;
  const onPile = (seat: number): Deed | undefined => {
    if (seat === game.seat && chosen !== undefined)
      return deed(may.mayDiscard, t("discardTile", { tile: tileText(chosen) }), () => arranging.move(selection, { to: "discard" }));
    if (game.seat === undefined || seat !== seatBefore(game, game.seat) || may.takeable === undefined) return undefined;
    const name = nameOf(game, seat);
    return deed(true, t("takeDiscardOf", { tile: tileText(may.takeable), name }), () => acting.takeDiscard());
  };
  return (
    <Board
      indicator={board.indicator}
      okey={wild}
      trump={board.trump}
      poolCount={game.poolCount}
      piles={pilesOf(game, board)}
      lastTile={board.finish?.tile ?? board.rackFinish?.tile}
      onPool={deed(may.mayTakePool, `${t("takeFromPool")}: ${t("poolLabel", { count: game.poolCount })}`, () => acting.takeFromPool())}
      onIndicator={
        chosen === undefined
          ? deed(may.mayShow, `${t("indicator", { tile: tileText(board.indicator) })}. ${t("showIndicator")}`, () => acting.showIndicator())
          : deed(may.mayFinish, t("finishWith", { tile: tileText(chosen) }), () => arranging.move(selection, { to: "finish" }))
      }
      onTrump={deed(may.trump !== undefined, t("takeTrumpTile", { tile: tileText(board.trump) }), () => acting.takeTrump())}
      onPile={onPile}
      dropSeat={may.mayDiscard ? game.seat : undefined}
      target={carried?.target?.to}
      mayFinish={may.mayFinish}
    >
      {isWithTable(game) ? <ArrangedTable arranging={arranging} tabStop={tabStop} okey={wild} /> : undefined}
    </Board>
  );
}

function nameOf(game: Game, seat: number): string {
  return playerOf(game, seat)?.name ?? t("seat", { seat });
}

function pilesOf(game: Game, board: DiscardBoard): ShownPile[] {
  const last = game.turn === undefined ? undefined : seatBefore(game, game.turn.seat);
  return cornersOf(game.turnOrder, game.seat).map(({ seat, corner }) => {
    const pile = board.piles.find((one) => one.seat === seat);
    return {
      seat,
      corner,
      name: nameOf(game, seat),
      newest: newestOf(pile),
      count: pile?.tileCount ?? 0,
      isFresh: seat === last,
    };
  });
}

/** The rack of slots. Wild tiles, a hint's spare tiles, and those that a refused finish leaves over are marked. */
export function StandView({ game, session, board, tabStop }: DiscardProps & { tabStop: TabStop }) {
  const { arranging } = session;
  const { history, selection, carried, hinted, problem } = useStore(arranging.state);
  const stand = history.present;
  if (!isStand(stand)) return null;
  const stop = tabStopOf(tabStop, stand.rack);
  const spare = marker(hinted);
  const left = marker(problem?.violations.flatMap(({ tiles }) => tiles) ?? []);
  const wild = wildOf(board);
  const { owed } = discardChoices(game);
  const isLaid = placed(stand).some(({ tile }) => tile === owed);
  const owedId = isLaid ? undefined : stand.rack.find(({ tile }) => tile === owed)?.id;
  const taken = marker(game.turn?.seat === game.seat ? (game.turn?.tilesDrawn ?? []) : []);
  const isPlacing = selection.length > 0 && carried === undefined;
  const target = carried?.target?.to === "rack" ? carried.target.index : -1;
  return (
    <section class={`rack stand ${stand.columns > COLUMNS ? "wide" : ""}`} aria-label={t("stand")} data-drop="rack">
      {stand.slots.map((piece, slot) => (
        <span key={slot} class={`stand-slot ${slot === target ? "is-target" : ""}`} data-slot={slot}>
          {piece !== undefined && (
            <MovableTile
              key={piece.id}
              piece={piece}
              name={piece.id === owedId ? t("mustLayTile", { tile: tileText(piece.tile) }) : okeyName(piece.tile, wild)}
              mark={[
                piece.tile === wild && "wild",
                spare(piece.tile) && "hinted",
                left(piece.tile) && "faulty",
                piece.id === owedId && "in-hand",
                taken(piece.tile) && "fresh",
                carried?.ids.includes(piece.id) && "carried",
              ]
                .filter(Boolean)
                .join(" ")}
              isSelected={selection.includes(piece.id)}
              isTabStop={piece.id === stop}
              onSelect={() => arranging.select(piece.id)}
              onFocus={() => tabStop.set(piece.id)}
            />
          )}
          {piece === undefined && isPlacing && (
            <button
              type="button"
              class="slot"
              tabIndex={-1}
              aria-label={slotText(stand, slot)}
              onClick={() => arranging.move(selection, { to: "rack", index: slot })}
            >
              +
            </button>
          )}
        </span>
      ))}
    </section>
  );
}

/** Returns a function that says of each tile, one after the other, whether it is one of some tiles. */
function marker(tiles: readonly Tile[]): (tile: Tile) => boolean {
  const left = [...tiles];
  return (tile) => {
    const index = left.indexOf(tile);
    if (index >= 0) left.splice(index, 1);
    return index >= 0;
  };
}

const TIERS = [
  [HintTier.PLAY_EXISTS, "hintLacks"],
  [HintTier.TILES, "hintSpare"],
  [HintTier.TURN, "hintAction"],
] as const;
const TABLE_TIERS = [
  [HintTier.PLAY_EXISTS, "hintOpening"],
  [HintTier.TURN, "hintAction"],
] as const;

/** What a player does with the tiles that lie on the table but are not laid yet. */
function LayActions({ session, isReady, isOwing }: { session: GameSession; isReady: boolean; isOwing: boolean }) {
  const { history } = useStore(session.state);
  const { acting, arranging } = session;
  return (
    <>
      <button
        type="button"
        class="primary"
        disabled={!isReady || placed(history.present).length === 0}
        onClick={() => acting.layTiles()}
      >
        {t("layTiles")}
      </button>
      {isOwing && (
        <button type="button" disabled={!isReady} onClick={() => acting.returnDiscard()}>
          {t("returnDiscard")}
        </button>
      )}
      <span class="group">
        <button type="button" disabled={history.past.length === 0} onClick={() => arranging.undo()}>
          {t("undo")}
        </button>
        <button type="button" disabled={history.future.length === 0} onClick={() => arranging.redo()}>
          {t("redo")}
        </button>
        <button type="button" disabled={history.past.length === 0} onClick={() => arranging.reset()}>
          {t("reset")}
        </button>
      </span>
    </>
  );
}

/** How a player finishes with all tiles at once: with a hand, or in International Rummikub also by a Foot. */
function FinishActions({ game, session: { arranging, state }, isReady }: { game: Game; session: GameSession; isReady: boolean }) {
  const { selection, history } = useStore(state);
  const isLaid = placed(history.present).length > 0;
  const finish = (ids: readonly number[]) => arranging.move(ids, { to: "finish" });
  return (
    <>
      <button type="button" disabled={!isReady || isLaid || selection.length !== 1} onClick={() => finish(selection)}>
        {t(isWithTable(game) ? "showHand" : "finish")}
      </button>
      {isWithTable(game) && (
        <button type="button" disabled={!isReady || !isLaid} onClick={() => finish(history.present.rack.slice(-1).map(({ id }) => id))}>
          {t("declareFoot")}
        </button>
      )}
    </>
  );
}

export function DiscardActions({ game, session }: Omit<DiscardProps, "board">) {
  const { isBusy, connection, selection, advice } = useStore(session.state);
  const { acting, arranging } = session;
  const may = discardChoices(game);
  const isReady = !isBusy && connection === "open";
  const isChosen = selection.length === 1;
  const hands = openingOf(game) === undefined ? [] : namedHandsOf(game);
  return (
    <div class="actions turn-actions">
      {may.mayDiscard ? (
        <>
          <button
            type="button"
            class="primary"
            disabled={!isReady || !isChosen}
            onClick={() => arranging.move(selection, { to: "discard" })}
          >
            {t("discardSelected")}
          </button>
          {may.mayFinish && <FinishActions game={game} session={session} isReady={isReady} />}
        </>
      ) : (
        <>
          <button type="button" class="primary" disabled={!isReady || !may.mayTakePool} onClick={() => acting.takeFromPool()}>
            {t("takeFromPool")}
          </button>
          <button type="button" disabled={!isReady || may.takeable === undefined} onClick={() => acting.takeDiscard()}>
            {t("takeDiscard")}
          </button>
          {may.trump !== undefined && (
            <button type="button" disabled={!isReady} onClick={() => acting.takeTrump()}>
              {t("takeTrump")}
            </button>
          )}
          {may.mayPass && (
            <button type="button" disabled={!isReady} onClick={() => acting.passEmptyPool()}>
              {t("passEmptyPool")}
            </button>
          )}
        </>
      )}
      {may.mayLay && <LayActions session={session} isReady={isReady} isOwing={may.owed !== undefined} />}
      {may.mayShow && (
        <button type="button" disabled={!isReady} onClick={() => acting.showIndicator()}>
          {t("showIndicator")}
        </button>
      )}
      <span class="group">
        <button type="button" onClick={() => arranging.sort("color")}>
          {t("sortRuns")}
        </button>
        <button type="button" onClick={() => arranging.sort("value")}>
          {t("sortGroups")}
        </button>
      </span>
      {hands.length > 0 && <NamedHands hands={hands} />}
      <HintMenu
        session={session}
        isReady={isReady}
        tiers={isWithTable(game) ? TABLE_TIERS : TIERS}
      />
      {advice !== undefined && (
        <button type="button" disabled={!isReady} onClick={() => acting.takeAdvice()}>
          {t("takeAdvice")}
        </button>
      )}
    </div>
  );
}
