/** The events of a game as sentences, for a screen reader. */
import type { Game, GameEvent } from "rummikub-client";
import { t, tilesList, tileText } from "../i18n/index.js";
import { finishText, rackFinishText } from "./finish-text.js";

/** Returns a sentence for an event; empty for an event that needs none. */
export function eventText({ event }: GameEvent, game: Game): string {
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
      return t("evPlayed", { name: name(event.value.seat), tiles: tilesList(event.value.tiles) });
    case "tilesDrawn": {
      const { seat, tiles } = event.value;
      return tiles.length > 0 ? t("evYouDrew", { tiles: tilesList(tiles) }) : t("evDrew", { name: name(seat) });
    }
    case "handsDealt":
      return t("evDeal", { round: event.value.round });
    case "poolTileTaken": {
      const { seat, tile } = event.value;
      return seat === game.seat ? t("evYouDrew", { tiles: tileText(tile) }) : t("evDrew", { name: name(seat) });
    }
    case "discardTaken":
      return t("evTookDiscard", { name: name(event.value.seat), tile: tileText(event.value.tile) });
    case "tileDiscarded":
    case "discardForced":
      return t("evDiscarded", { name: name(event.value.seat), tile: tileText(event.value.tile) });
    case "indicatorShown":
      return t("evShowedIndicator", { name: name(event.value.seat) });
    case "trumpTaken":
      return t("evTookTrump", { name: name(event.value.seat), tile: tileText(event.value.tile) });
    case "threeTilesLeft":
      return t("evThreeLeft", { name: name(event.value.seat) });
    case "emptyPoolPassed":
      return t("evPassed", { name: name(event.value.seat) });
    case "handFinished":
      return finishText(name(event.value.seat), event.value);
    case "tilesLaid":
      return t("evLaidTiles", { name: name(event.value.seat), tiles: tilesList(event.value.tiles) });
    case "discardReturned":
      return t("evReturnedDiscard", { name: name(event.value.seat), tile: tileText(event.value.tile) });
    case "penaltyScored":
      return t("evPenaltyScored", { name: name(event.value.seat), points: event.value.points });
    case "rackFinished":
      return rackFinishText(name(event.value.seat), event.value);
    case "turnPassed":
    case "turnEnded":
      return t("evPassed", { name: name(event.value.seat) });
    case "playerKnocked":
      return t("evKnocked", { name: name(event.value.seat) });
    case "turnTimedOut":
      return t("evTimedOut", { name: name(event.value.seat) });
    case "turnPenalised":
      return t("evPenalised", { name: name(event.value.seat), count: event.value.tileCount });
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
    case "riverTileLaid":
      return t("evLaid", { name: name(event.value.seat), tile: tileText(event.value.tile) });
    case "illegalPlayShown":
      return t("evShown", { name: name(event.value.seat) });
    case "playerAbsent":
      return t("evAbsent", { name: name(event.value.seat) });
    case "playerReturned":
      return t("evReturned", { name: name(event.value.seat) });
    default:
      return "";
  }
}
