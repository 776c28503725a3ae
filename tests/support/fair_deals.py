"""Shuffles of random games that follow from the seeds of the server and the players (engine.fair_deal)."""

from dataclasses import replace

from engine.actions import Action, Join, StandIn, StartDueRound, StartGame, StartNextRound
from engine.fair_deal import seed_of, shuffle_for
from engine.game import Game
from engine.melding.actions import RequestRedeal


def fairly(game: Game, action: Action, secret: bytes) -> Action:
    """Returns an action with a shuffle that follows from the seeds, and with the seed of a player who joins."""
    match action:
        case StartGame() | StartNextRound() | StartDueRound() | RequestRedeal():
            return replace(action, shuffle=shuffle_for(game, seed_of(secret, game.deals + 1)))
        case StandIn():
            return replace(action, action=fairly(game, action.action, secret))  # type: ignore[arg-type]
        case Join():
            return replace(action, deal_seed=action.name.encode())
        case _:
            return action
