/** Questions about the game: hints of a tier, and explanations of plays step by step. */
import {
  Existence,
  type HandStanding,
  HintTier,
  type PlayTurnRequest,
  type Rummikub,
  type Suggestion,
} from "rummikub-client";
import { t, tilesList, tileText } from "../i18n/index.js";
import { stepsOf } from "../model/steps.js";
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
      const { suggestion, hand, turn } = await this.#service.analysis.suggestTurn({
        subject: { case: "gameId", value: gameId },
        tier,
      });
      if (hand !== undefined) {
        return this.#state.set({ hinted: hand.spare, notice: handText(hand, turn), advice: turn });
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
    });
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

/** Returns what a hand of a game of discards lacks, and what a hint suggests to do, or which tiles are spare. */
export function handText({ missing, spare }: HandStanding, turn: PlayTurnRequest | undefined): string {
  const lacks = missing === 0 ? t("handFinished") : t("handLacks", { count: missing });
  const advice = adviceText(turn?.action);
  if (advice !== "") return `${lacks} ${t("advice", { advice })}`;
  return spare.length > 0 ? `${lacks} ${t("handSpare", { tiles: tilesList(spare) })}` : lacks;
}

function adviceText(action: PlayTurnRequest["action"] | undefined): string {
  switch (action?.case) {
    case "takeFromPool":
      return t("takeFromPool");
    case "takeDiscard":
      return t("takeDiscard");
    case "discard":
      return t("discardTile", { tile: tileText(action.value.tile) });
    case "finish":
      return t("finishWith", { tile: tileText(action.value.tile) });
    case "showIndicator":
      return t("showIndicator");
    default:
      return "";
  }
}
