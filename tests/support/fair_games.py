"""Random games of every family whose deals are fair: all follow from the seeds of the server and the players."""

import random
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from engine.discard.presets import PRESETS as DISCARD_PRESETS
from engine.discard.ruleset import Ruleset as DiscardRuleset
from engine.melding.ruleset import Preset
from engine.record import GameRecord, record_of
from engine.room_settings import FairDeal, RoomSettings
from support import okey_games
from support.random_play import Change, players_of, random_changes, random_grid_room, random_room
from support.rooms import Room, room, room_of

LONGEST: Final = 1_000
"""After how many changes a game is cut; its rounds until then can be checked all the same."""


def fair_record(family: str, seed: int, longest: int = LONGEST) -> GameRecord:
    """Returns the record of a random game of a family, with a secret of its own; cut after so many changes."""
    secret = random.Random(f"{family} {seed}").randbytes(32)
    changes = islice(FAMILIES[family](seed, secret), longest)
    return record_of((one.applied.game.revision, one.now_ms, one.applied.events) for one in changes)


_Changes = Callable[[int, bytes], Iterator[Change]]


def _melding(choose: Callable[[random.Random], Room]) -> _Changes:
    def changes(seed: int, secret: bytes) -> Iterator[Change]:
        rules = room(choose(random.Random(seed)), fair_deal=FairDeal.COMMITTED)
        return random_changes(seed, players_of(rules, seed), rules, secret)

    return changes


def _discards(choose: Callable[[random.Random], DiscardRuleset]) -> _Changes:
    def changes(seed: int, secret: bytes) -> Iterator[Change]:
        rng = random.Random(seed)
        settings = RoomSettings(turn_time_limit_seconds=rng.choice((0, 30)), fair_deal=FairDeal.COMMITTED)
        return okey_games.changes_under(choose(rng), settings, rng, secret)

    return changes


FAMILIES: Final[dict[str, _Changes]] = {
    **{preset.name: _melding(lambda _, preset=preset: room_of(preset)) for preset in Preset},  # type: ignore[misc]
    "random rulesets": _melding(random_room),
    "random crosses": _melding(random_grid_room),
    **{preset.name: _discards(lambda _, rules=rules: rules) for preset, rules in DISCARD_PRESETS.items()},  # type: ignore[misc]
    "random Okey": _discards(okey_games.random_ruleset),
    "random 101 Okey": _discards(okey_games.random_101_ruleset),
    "random American and International": _discards(okey_games.random_joker_ruleset),
}
"""Random games of every family, by name."""
