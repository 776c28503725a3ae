"""What the service asks of a family: the outcome of a turn, whether it may search, whether a round names its seats."""

from dataclasses import replace

import pytest

from engine.discard import game as discard
from engine.discard import presets as discard_presets
from engine.discard.actions import TakeFromPool
from engine.events import TurnStarted
from engine.family import named_rulesets, presets_of
from engine.game import Playing
from engine.melding import game as melding
from engine.melding import presets as melding_presets
from engine.melding.actions import DrawTile
from engine.melding.events import (
    MeldingEvent,
    TileDrawn,
    TilesDrawn,
    TilesOffered,
    TilesPlayed,
    TurnPassed,
    TurnPenalised,
)
from engine.melding.game import round_of
from engine.melding.round import MeldingRound, ShownPlay
from engine.melding.ruleset import SABRA, TurnVoluntaryDraw
from engine.melding.turns import arrange
from engine.notation import parse_tiles
from engine.seats import Player, Rack, Turn
from engine.sight import see
from engine.turns import Applied, create, may_search, outcome
from engine.violations import Reason, refused
from support.okey_games import started
from support.positions import only_reason

ONE, TWO = parse_tiles("R7"), parse_tiles("R7 B8")
TURN = TurnStarted(Turn(2, None))
ROUND = MeldingRound(1, (2, 1), (), (Rack(1, ONE), Rack(2, TWO)), (), Turn(2, None))


@pytest.mark.parametrize(
    ("event", "played", "points", "drawn"),
    [
        (TilesPlayed(1, TWO, (), 15), TWO, 15, ()),
        (TileDrawn(1, ONE[0]), (), 0, ONE),
        (TilesDrawn(1, TWO), (), 0, TWO),
        (TilesOffered(1, (TWO[0], TWO[1])), (), 0, TWO),
        (TurnPenalised(1, TWO), (), 0, TWO),
        (TurnPassed(1), (), 0, ()),
    ],
)
def test_a_turn_tells_its_player_what_was_played_and_drawn(
    event: MeldingEvent, played: tuple[int, ...], points: int, drawn: tuple[int, ...]
) -> None:
    told = outcome(Applied(create(SABRA).game, (event, TURN)))
    assert (told.tiles_played, told.points, told.tiles_drawn) == (played, points, drawn)


def test_a_game_of_another_family_is_refused() -> None:
    okey, sabra = started(1), replace(create(SABRA).game, phase=Playing(ROUND))
    for family, game in ((melding, okey), (discard, sabra)):
        for read in (family.rules_of, family.round_of):
            with pytest.raises(TypeError, match="another family"):
                read(game)
        with pytest.raises(TypeError, match="another family"):
            family.seen_round(see(game, 1))


def test_no_table_is_arranged_in_a_game_of_another_family() -> None:
    assert arrange(started(1), 1, (), 0) == refused(Reason.ACTION_NOT_IN_GAME)


def test_the_presets_of_all_families_are_named() -> None:
    named = named_rulesets()
    assert {one.ruleset.preset for one in named} == {*melding_presets.PRESETS, *discard_presets.PRESETS}
    assert all(presets_of(one.ruleset).stated(one.ruleset, one.settings) == {} for one in named)


def test_a_game_has_the_actions_of_its_family_alone() -> None:
    okey, sabra = (
        started(1),
        replace(create(SABRA).game, players=(Player(1, "Ada"), Player(2, "Ben")), phase=Playing(ROUND)),
    )
    seat = discard.round_of(okey).turn.seat
    for game, action in ((okey, DrawTile(seat)), (sabra, TakeFromPool(2))):
        assert only_reason(game, action) is Reason.ACTION_NOT_IN_GAME


def test_only_rules_that_ask_for_plays_may_search() -> None:
    assert not may_search(create(SABRA).game)
    assert may_search(create(replace(SABRA, turn_voluntary_draw=TurnVoluntaryDraw.ONLY_IF_NO_PLAY)).game)


@pytest.mark.parametrize(
    "round_",
    [
        replace(ROUND, passed=(3,)),
        replace(ROUND, declined=(3,)),
        replace(ROUND, last_chance=(2, 3)),
        replace(ROUND, last_chance=(1, 2)),
        replace(ROUND, shown_play=ShownPlay(4, (), (), claimed=(3,))),
        replace(ROUND, shown_play=ShownPlay(4, (), (), against=3)),
    ],
)
def test_a_round_that_names_other_seats_is_found(round_: MeldingRound) -> None:
    assert not round_.names_its_seats


@pytest.mark.parametrize(
    "round_",
    [
        ROUND,
        replace(ROUND, passed=(1, 2), declined=(1,), last_chance=(2, 1)),
        replace(ROUND, shown_play=ShownPlay(4, (), (), claimed=(1,))),
        replace(ROUND, shown_play=ShownPlay(4, (), (), against=1)),
    ],
)
def test_a_round_names_its_seats(round_: MeldingRound) -> None:
    assert round_of(replace(create(SABRA).game, phase=Playing(round_))).names_its_seats
