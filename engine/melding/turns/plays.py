"""Decisions on plays of tiles: legal plays, illegal ones, and claims of an error."""

from dataclasses import dataclass
from typing import Final

from engine.decisions import Context, Decision, IllegalPlay, TurnOver
from engine.game import Game, is_expired
from engine.melding.actions import ClaimError, PlayTiles
from engine.melding.events import ErrorClaimed, IllegalPlayShown, PlayerKnocked, TilesPlayed
from engine.melding.exchange import Exchange
from engine.melding.fast.fast_judge import FastJudges
from engine.melding.fast.fast_play import PlayerState
from engine.melding.fast.read_melds import melds_by_identity
from engine.melding.game import must_draw_first, rules_of
from engine.melding.grid.cells import Grid
from engine.melding.grid.play import GridPlay
from engine.melding.grid.rules import judge_grid
from engine.melding.melds import Meld, ProposedMeld
from engine.melding.round import Drawn, MeldingRound
from engine.melding.rules import has_own_tiles_only
from engine.melding.ruleset import Ruleset, TurnDraw, TurnInvalidSubmission
from engine.melding.table import as_grid
from engine.melding.turns.draws import no_knock
from engine.melding.turns.settlement import have_all_claimed, penalty
from engine.tiles import without
from engine.violations import Reason, Refused, Violation, refused


@dataclass(frozen=True, slots=True)
class Rejected:
    """A play that the rules reject."""

    play: Exchange
    violations: tuple[Violation, ...]


def play_tiles(game: Game, round_: MeldingRound, action: PlayTiles) -> Decision:
    """Decides on `PlayTiles`."""
    match judged(round_, action, rules_of(game)):
        case TilesPlayed() as played:
            return _knocked(rules_of(game), round_, played) if action.knocks else TurnOver((played,))
        case Rejected(play, violations):
            return _illegal(rules_of(game), round_, play, violations)
        case Refused() as refusal:
            return refusal


def _knocked(ruleset: Ruleset, round_: MeldingRound, played: TilesPlayed) -> Decision:
    """Returns a play with the knock after it, which the last tiles do not need (knock_limit)."""
    left = without(round_.rack(played.seat).tiles + played.pulled, played.tiles)
    refusal = no_knock(ruleset, left) if left or not ruleset.knock_limit else None
    return refusal or TurnOver((played, PlayerKnocked(played.seat)) if left else (played,))


OTHER_LAYOUT: Final = refused(Reason.TABLE_LAYOUT_MISMATCH)
"""The refusal of a table whose layout is not that of the game (table_layout)."""
_SUBJECT: Final = "play.table"
_JUDGES: Final = FastJudges[Ruleset, Meld, ProposedMeld](lambda ruleset: ruleset, melds_by_identity, _SUBJECT)


def judged(round_: MeldingRound, action: PlayTiles, ruleset: Ruleset) -> TilesPlayed | Rejected | Refused:
    """Returns the event of a legal play, the violations of an illegal one, or a refusal of another layout or step."""
    is_usual = ruleset.turn_draw is TurnDraw.ONE  # most games: saves the lookups
    if not is_usual and not _may_play(ruleset, round_):
        return refused(Reason.TURN_PHASE_WRONG)
    rack = round_.rack(action.seat)
    player = PlayerState(
        rack.tiles,
        rack.has_melded,
        river=round_.river,
        river_index=action.river_index,
        drawn=round_.step.tile if isinstance(round_.step, Drawn) else None,
        calls_rummikub=action.calls_rummikub,
    )
    before, after = round_.table, action.table
    if isinstance(before, Grid):
        grid = as_grid(after)
        return OTHER_LAYOUT if grid is None else _judged_grid(before, grid, player, ruleset, action.seat)
    if isinstance(after, Grid):
        return OTHER_LAYOUT
    judge = _JUDGES.of(ruleset)
    verdict = judge.judge(before, after, player)
    if verdict is None:
        verdict = judge.judge_plainly(player.plain_play(before, after, ruleset, _SUBJECT))
    play = verdict.play
    if play is not None and verdict.violations:
        return Rejected(play, verdict.violations)
    pulled = () if play is None else play.pulled
    return TilesPlayed(action.seat, verdict.tiles_played, judge.new_table(before, after), verdict.points, pulled)


def _may_play(ruleset: Ruleset, round_: MeldingRound) -> bool:
    """Returns whether the step of the turn allows a play."""
    return not must_draw_first(ruleset, type(round_.step), len(round_.pool))


def _judged_grid(before: Grid, after: Grid, player: PlayerState, ruleset: Ruleset, seat: int) -> TilesPlayed | Rejected:
    play = GridPlay(before, after, ruleset=ruleset, subject=_SUBJECT, **player._asdict())
    judgement = judge_grid(play)
    if judgement.violations:
        return Rejected(play, judgement.violations)
    return TilesPlayed(seat, judgement.tiles_played, judgement.table, judgement.points)


def _illegal(ruleset: Ruleset, round_: MeldingRound, play: Exchange, violations: tuple[Violation, ...]) -> Decision:
    """Returns the consequences of an illegal play (turn_invalid_submission).

    A play whose only violation is TURN_TOO_COMPLEX is never penalized.
    """
    if all(violation.reason is Reason.TURN_TOO_COMPLEX for violation in violations):
        return Refused(violations)
    match ruleset.turn_invalid_submission:
        case TurnInvalidSubmission.REJECT:
            return Refused(violations)
        case TurnInvalidSubmission.PENALISE:
            return TurnOver(penalty(round_, ruleset), violations)
        case TurnInvalidSubmission.PENALISE_ON_UNANIMOUS_CLAIM:
            if not has_own_tiles_only(play):  # a player cannot lay tiles that they do not have, so none are shown
                return Refused(violations)
            reasons = tuple(dict.fromkeys(violation.reason for violation in violations))
            return IllegalPlay((IllegalPlayShown(round_.turn.seat, play.table_after, reasons),), violations)


def claim_error(game: Game, round_: MeldingRound, action: ClaimError, context: Context) -> Decision:
    """Decides on `ClaimError`. The penalty follows once all other players have claimed the error."""
    shown = round_.shown_play
    if game.player(action.seat).resigned:
        return refused(Reason.PLAYER_RESIGNED)
    if shown is None or shown.revision != action.play_revision or is_expired(game, context.now_ms):
        return refused(Reason.NOTHING_TO_CLAIM)
    if action.seat == round_.turn.seat:
        return refused(Reason.CLAIM_OWN_PLAY)
    if shown.against is not None:
        return refused(Reason.CLAIM_NOT_UNANIMOUS)
    if action.seat in shown.claimed:
        return refused(Reason.CLAIM_ALREADY_VOTED)
    claimed = ErrorClaimed(action.seat, action.agrees)
    if action.agrees and have_all_claimed(game, round_, action.seat):
        return TurnOver((claimed, *penalty(round_, rules_of(game))))
    return (claimed,)
