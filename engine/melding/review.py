"""The review of a record of a melding game: the moves in which a player could have played, with their situations."""

from dataclasses import dataclass
from typing import Final

from engine.game import Playing
from engine.melding.analysis import AnySituation, GridSituation, situation_of
from engine.melding.game import must_draw_first, round_of, rules_of
from engine.melding.round import Choosing, Drawn
from engine.melding.ruleset import Ruleset, TurnPlayAfterDraw
from engine.melding.scoring import rack_value
from engine.melding.solver import LegalTurn, Objective
from engine.melding.solver.grid_search import GridTurn
from engine.moves import MoveKind, Played
from engine.tiles import Tile, without

REVIEWED: Final = frozenset(
    {MoveKind.PLAY, MoveKind.DRAW, MoveKind.PASS_TURN, MoveKind.PENALTY, MoveKind.TIME_OUT, MoveKind.KNOCK},
)
"""The moves in which a player could have played."""


@dataclass(frozen=True, slots=True)
class MoveToReview:
    """A move in which a player could have played, and the player's position before it.

    Attributes:
        move: Its index in the record.
        revision: Its revision.
        round: Its round.
        seat: The player.
        kind: What the player did.
        played: The tiles, and their value, that left the rack.
        situation: The position before the move.
        kept: Further tiles of the rack, which the player could not play.
    """

    move: int
    revision: int
    round: int
    seat: int
    kind: MoveKind
    played: tuple[int, int]
    situation: AnySituation
    kept: tuple[Tile, ...]

    def gained(self, objective: Objective) -> int:
        """Returns what the player's play gained."""
        tiles, value = self.played
        return tiles if objective is Objective.MOST_TILES else value

    def missed(self, best: LegalTurn | GridTurn, objective: Objective) -> int:
        """Returns what a best turn would have gained beyond that."""
        return max(0, gain_of(self.situation, best, objective) - self.gained(objective))


def to_review(index: int, step: Played) -> MoveToReview | None:
    """Returns a move to review; None if its player could not play."""
    move, before = step.move, step.before
    if move.kind not in REVIEWED or not isinstance(before.phase, Playing):
        return None
    round_, ruleset = round_of(before), rules_of(before)
    if isinstance(round_.step, Choosing) or must_draw_first(ruleset, type(round_.step), len(round_.pool)):
        return None
    rack = round_.rack(move.seat)
    others_only = ruleset.turn_play_after_draw is TurnPlayAfterDraw.OTHER_TILES
    kept = (round_.step.tile,) if isinstance(round_.step, Drawn) and others_only else ()
    situation = situation_of(round_.table, without(rack.tiles, kept), rack.has_melded, ruleset, round_.river)
    after = round_of(step.after).rack(move.seat).tiles
    played = (0, 0) if move.table is None else _difference(rack.tiles, after, ruleset)
    return MoveToReview(index, move.revision, round_.number, move.seat, move.kind, played, situation, kept)


def gain_of(situation: AnySituation, turn: LegalTurn | GridTurn, objective: Objective) -> int:
    """Returns what a turn gains."""
    return gain(situation, (*without(situation.rack, turn.tiles), *_plunder(situation, turn)), objective)


def gain(situation: AnySituation, left: tuple[Tile, ...], objective: Objective) -> int:
    """Returns what a turn gains that leaves some tiles on the rack."""
    tiles, value = _difference(situation.rack, left, situation.ruleset)
    return tiles if objective is Objective.MOST_TILES else value


def _plunder(situation: AnySituation, turn: LegalTurn | GridTurn) -> tuple[Tile, ...]:
    """Returns the tiles that come to the rack from the River (turn_draw TWO_RIVER)."""
    if isinstance(situation, GridSituation) or isinstance(turn, GridTurn) or turn.river_index is None:
        return ()
    return situation.river[turn.river_index + 1 :]


def _difference(before: tuple[Tile, ...], after: tuple[Tile, ...], ruleset: Ruleset) -> tuple[int, int]:
    """Returns how many tiles fewer a rack has, and how much less they are worth."""
    return len(before) - len(after), rack_value(before, ruleset) - rack_value(after, ruleset)
