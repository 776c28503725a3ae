"""The end of a turn: absence, the clock, then what the family makes of it."""

from dataclasses import dataclass
from functools import reduce

from engine.clocks import stopped_clock
from engine.decisions import Context, TurnOver
from engine.events import Event, PlayerResigned
from engine.family import family_of
from engine.game import Game, Playing
from engine.replay import evolve
from engine.turns.absence import absence_after


@dataclass(frozen=True, slots=True)
class TurnEnding:
    """Events that end a turn, the game after them, and the consequences. No event is applied twice."""

    causes: tuple[Event, ...]
    game: Game
    consequences: tuple[Event, ...]

    @property
    def events(self) -> tuple[Event, ...]:
        """The causes, then the consequences."""
        return (*self.causes, *self.consequences)


def end_turn(game: Game, over: TurnOver, context: Context) -> TurnEnding:
    """Returns events that end a turn, or a resignation, with their consequences."""
    after = reduce(evolve, over.events, game)
    more = absence_after(after, over.events)
    last = (more or over.events)[-1]
    if isinstance(after.phase, Playing):
        turn = after.phase.round.turn
        if not (isinstance(last, PlayerResigned) and last.seat != turn.seat):  # that ends no turn
            more += stopped_clock(after, after.phase.round, context.now_ms)
        after = reduce(evolve, more, after)
    causes, consequences = over.events + more, family_of(game).settle(after, last, context)
    if isinstance(consequences, TurnOver):
        ending = end_turn(after, consequences, context)
        return TurnEnding(causes + ending.causes, ending.game, ending.consequences)
    return TurnEnding(causes, after, consequences)
