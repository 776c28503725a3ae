/** The events of a game as sentences, for the log and for a screen reader. */
import { type Game, type GameEvent, Tile } from "rummikub-client";
import { t, tilesList } from "../i18n/index.js";
import { finishText, rackFinishText } from "./finish-text.js";

/** Returns the tiles that the sentence for an event names. */
export function eventTiles({ event }: GameEvent): readonly Tile[] {
  const { tiles, tile = Tile.UNSPECIFIED } = (event.value ?? {}) as { tiles?: readonly Tile[]; tile?: Tile };
  return tiles ?? (tile === Tile.UNSPECIFIED ? [] : [tile]);
}

/** Returns a sentence for an event; empty for an event that needs none. `list` returns its tiles in words. */
export function eventText(whole: GameEvent, game: Game, list: (tiles: readonly Tile[]) => string = tilesList): string {
  const { event } = whole;
  const tiles = list(eventTiles(whole));
  const name = (seat: number) =>
    [...game.players, ...game.reservedSeats].find((one) => one.seat === seat)?.name ?? t("seat", { seat });
  switch (event.case) {
    case "roundStarted":
      return t("evDeal", { round: event.value.round });
    case "turnStarted": {
      const seat = event.value.turn?.seat ?? 0;
      return seat === game.seat ? t("evYourTurn") : t("evTurn", { name: name(seat) });
    }
    case "tilesPlayed":
      return t("evPlayed", { name: name(event.value.seat), tiles });
    case "tilesDrawn": {
      const { seat, tiles: drawn } = event.value;
      return drawn.length > 0 ? t("evYouDrew", { tiles }) : t("evDrew", { name: name(seat) });
    }
    case "handsDealt":
      return t("evDeal", { round: event.value.round });
    case "poolTileTaken": {
      const { seat } = event.value;
      return seat === game.seat ? t("evYouDrew", { tiles }) : t("evDrew", { name: name(seat) });
    }
    case "discardTaken":
      return t("evTookDiscard", { name: name(event.value.seat), tile: tiles });
    case "tileDiscarded":
    case "discardForced":
      return t("evDiscarded", { name: name(event.value.seat), tile: tiles });
    case "indicatorShown":
      return t("evShowedIndicator", { name: name(event.value.seat) });
    case "trumpTaken":
      return t("evTookTrump", { name: name(event.value.seat), tile: tiles });
    case "threeTilesLeft":
      return t("evThreeLeft", { name: name(event.value.seat) });
    case "emptyPoolPassed":
      return t("evPassed", { name: name(event.value.seat) });
    case "handFinished":
      return finishText(name(event.value.seat), event.value);
    case "tilesLaid":
      return t("evLaidTiles", { name: name(event.value.seat), tiles });
    case "discardReturned":
      return t("evReturnedDiscard", { name: name(event.value.seat), tile: tiles });
    case "penaltyScored":
      return t("evPenaltyScored", { name: name(event.value.seat), points: event.value.points });
    case "rackFinished":
      return rackFinishText(name(event.value.seat), event.value, undefined, list);
    case "turnPassed":
    case "turnEnded":
      return t("evPassed", { name: name(event.value.seat) });
    case "playerKnocked":
      return t("evKnocked", { name: name(event.value.seat) });
    case "turnTimedOut": {
      const { seat, tileCount: count, tiles: drawn } = event.value;
      if (drawn.length > 0) return t("evYouTimedOut", { tiles });
      return count > 0 ? t("evTimedOutDrew", { name: name(seat), count }) : t("evTimedOut", { name: name(seat) });
    }
    case "turnPenalised": {
      const { seat, tileCount: count, tiles: drawn } = event.value;
      return drawn.length > 0 ? t("evYouPenalised", { tiles }) : t("evPenalised", { name: name(seat), count });
    }
    case "lastChanceStarted":
      return t("evLastChance");
    case "roundEnded":
      return t("evRoundEnded");
    case "gameEnded":
      return t("evGameEnded");
    case "gameAborted":
      return t("gameAborted");
    case "playerJoined":
      return [t("evJoined", { name: event.value.name }), event.value.startTime ? t("evStarts") : ""].join(" ").trim();
    case "playerLeft":
    case "playerKicked":
      return t("evLeft", { name: name(event.value.seat) });
    case "abortRequested":
      return t("evAbortVote", { name: name(event.value.seat) });
    case "rematchCreated":
      return t("evRematch");
    case "playerResigned":
      return t("evResigned", { name: name(event.value.seat) });
    case "seatTakenOver":
      return t("evTakesOver", { name: event.value.name, seat: event.value.seat });
    case "riverTileLaid":
      return t("evLaid", { name: name(event.value.seat), tile: tiles });
    case "illegalPlayShown":
      return t("evShown", { name: name(event.value.seat) });
    case "errorClaimed":
      return t(event.value.agrees ? "evClaimed" : "evAccepted", { name: name(event.value.seat) });
    case "redealDemanded":
      return t("evRedeal", { name: name(event.value.seat) });
    case "playerAbsent":
      return t("evAbsent", { name: name(event.value.seat) });
    case "playerReturned":
      return t("evReturned", { name: name(event.value.seat) });
    default:
      return "";
  }
}
