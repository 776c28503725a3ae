/** Questions about the game: hints of a tier, and explanations of plays step by step. */
import {
  Existence,
  type HandPart,
  type HandStanding,
  HintTier,
  type OpeningStanding,
  type PlayTurnRequest,
  type Rummikub,
  type Suggestion,
} from "rummikub-client";
import { t, tilesList, tileText } from "../i18n/index.js";
import { stepsOf } from "../model/steps.js";
import { without } from "../model/tiles.js";
import { meldingOf, tableBefore } from "../model/turn.js";
import type { Acting } from "./acting.js";
import type { SessionStore } from "./session-state.js";

export class Hints {
  readonly #service: Rummikub;
  readonly #acting: Acting;
  readonly #state: SessionStore;

  constructor(service: Rummikub, acting: Acting, state: SessionStore) {
    this.#service = service;
    this.#acting = acting;
    this.#state = state;
  }

  /** Asks for a hint of a tier, and shows it. */
  async hint(tier: HintTier): Promise<void> {
    await this.#acting.act(async (gameId) => {
      const { suggestion, hand, opening, turn } = await this.#service.analysis.suggestTurn({
        subject: { case: "gameId", value: gameId },
        tier,
      });
      const { discardBoard: board } = this.#state.game;
      if (board !== undefined) {
        const standing = hand === undefined ? openingText(opening) : handText(hand, turn !== undefined);
        const advice = adviceText(turn?.action, board.table);
        const notice = [standing, advice === "" ? "" : t("advice", { advice })].join(" ").trim();
        return this.#state.set({ hinted: hand?.spare ?? [], notice, advice: turn });
      }
      if (suggestion === undefined) return;
      this.#state.set({ hinted: suggestion.tilesPlayed, notice: hintText(suggestion, tier) });
      if (tier === HintTier.TURN && suggestion.table !== undefined) {
        const play = turn?.action.case === "play" ? turn.action.value : undefined;
        const before = this.#state.game.table;
        const { table: after } = suggestion;
        const steps = stepsOf(suggestion);
        this.#state.set({ shown: { title: t("bestTurn"), before, after, steps, ...(play && { play }) } });
      }
    }, "notice");
  }

  /** Explains the last play of the table step by step. */
  async explainLastPlay(name: string): Promise<void> {
    const { lastPlay } = this.#state.value;
    const ruleset = meldingOf(this.#state.game);
    if (lastPlay === undefined) return;
    const { before, after, pulled } = lastPlay;
    await this.#acting.act(async () => {
      const { steps } = await this.#service.analysis.explainTurn({
        ...(ruleset && { ruleset }),
        tableBefore: tableBefore(before),
        tableAfter: tableBefore(after),
        pulled: [...pulled],
      });
      this.#state.set({ shown: { title: t("explained", { name }), before, steps } });
    });
  }

  closeShown(): void {
    this.#state.set({ shown: undefined });
  }
}

function hintText({ playExists, tilesPlayed }: Suggestion, tier: HintTier): string {
  if (playExists === Existence.NO) return t("cannotPlay");
  if (playExists === Existence.UNKNOWN) return t("playUnknown");
  return tier === HintTier.PLAY_EXISTS ? t("canPlay") : t("bestTiles", { tiles: tilesList(tilesPlayed) });
}

/** Returns what a hand of a game of discards lacks, and which tiles are spare unless a turn is suggested. */
function handText({ missing, spare }: HandStanding, isAdvised: boolean): string {
  const lacks = missing === 0 ? t("handFinished") : t("handLacks", { count: missing });
  return spare.length > 0 && !isAdvised ? `${lacks} ${t("handSpare", { tiles: tilesList(spare) })}` : lacks;
}

/** Returns what a rack lacks to open; empty after the opening. */
function openingText(opening: OpeningStanding | undefined): string {
  if (opening === undefined) return "";
  const { pointsMissing: points, pairsMissing: pairs } = opening;
  if (points === 0) return t("canOpenMelds");
  if (pairs === 0) return t("canOpenPairs");
  return pairs === undefined ? t("openingLacksPoints", { points }) : t("openingLacks", { points, pairs });
}

function adviceText(action: PlayTurnRequest["action"] | undefined, table: readonly HandPart[]): string {
  switch (action?.case) {
    case "takeFromPool":
      return t("takeFromPool");
    case "takeDiscard":
      return t("takeDiscard");
    case "takeTrump":
      return t("takeTrump");
    case "passEmptyPool":
      return t("passEmptyPool");
    case "discard":
      return t("discardTile", { tile: tileText(action.value.tile) });
    case "finish":
      if (action.value.table.length > 0) return t("declareFoot");
      return t("finishWith", { tile: tileText(action.value.tile) });
    case "lay": {
      const before = table.flatMap(({ tiles }) => tiles);
      const after = action.value.table.flatMap(({ tiles }) => tiles);
      return t("adviceLay", { tiles: tilesList(without(after, before).left) });
    }
    case "returnDiscard":
      return t("returnDiscard");
    case "showIndicator":
      return t("showIndicator");
    default:
      return "";
  }
}
