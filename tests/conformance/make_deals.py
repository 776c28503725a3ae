"""Generates deals.json: recorded deals with their seeds, for programs that check deals (docs/fair-deal.md).

It has `deals`, games that have just begun; `games`, with the draws of two rounds and with a new deal on demand; and
`forgeries`, none of which a check of deals may find fair.

Usage: make deals, or `PYTHONPATH=tests python -m conformance.make_deals 10000 FILE` for another number of deals
"""

import base64
import json
import random
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from engine.actions import AbortGame, Action, Join, StartGame, StartNextRound
from engine.deal import Shuffle
from engine.discard.presets import AMERICAN, OKEY_101
from engine.discard.ruleset import OKEY
from engine.fair_deal import SEED_BYTES, commitment_to, seed_of, shuffle_for, shuffled, words_of
from engine.game import Finished, RoundOver
from engine.melding.actions import DrawTile, Pass, RequestRedeal
from engine.melding.deal import draw_for_start, may_demand_redeal, turn_order
from engine.melding.events import RoundStarted
from engine.melding.game import round_of
from engine.melding.ruleset import OPTIONS, SABRA, DealThreePairsReshuffle, MatchEnd, problems, with_options
from engine.moves import MoveKind
from engine.record import GameRecord, record_of
from engine.record_text import format_record
from engine.room_settings import DEFAULT_SETTINGS, FairDeal
from engine.seats import HOST, Rack
from engine.tiles import JOKER, Tile, in_order
from engine.turns import Applied, apply, create
from engine.unions import Ruleset
from service.codec.records import encode_record

PATH: Final = Path(__file__).with_name("deals.json")
FORMAT: Final = "rummikub-deals/1"
COUNT: Final = 40
SECRET: Final = bytes(range(SEED_BYTES))
SETTINGS: Final = replace(DEFAULT_SETTINGS, fair_deal=FairDeal.COMMITTED)
_OF_DEALS: Final = [name for name in OPTIONS if name.startswith(("deal_", "start_", "players_", "jokers_total"))]


def random_rules(rng: random.Random) -> Ruleset:
    """Returns rules, most of them with options of the deal."""
    family = rng.randrange(8)
    if family < 3:
        return (OKEY, OKEY_101, AMERICAN)[family]
    while True:
        chosen = {name: rng.choice(OPTIONS[name].usual) for name in _OF_DEALS if rng.random() < 0.5}
        rules = with_options(SABRA, chosen)
        if not problems(rules):
            return rules


def random_record(rng: random.Random) -> GameRecord:
    """Returns the record of a game that has just begun."""
    rules, secret = random_rules(rng), rng.randbytes(SEED_BYTES)
    applied = create(rules, SETTINGS, deal_commitment=commitment_to(secret))
    changes = [(1, 1_000, applied.events)]
    players = rng.randint(rules.players_min, rules.players_max)
    for number in range(players + 1):
        if number < players:
            seed = rng.randbytes(rng.choice((0, 1, 16, 64)))
            action: Join | StartGame = Join(f"player {number + 1}", deal_seed=seed)
        else:
            action = StartGame(HOST, shuffle_for(applied.game, seed_of(secret, 1)))
        outcome = apply(applied.game, action, 1_000)
        if not isinstance(outcome, Applied):
            raise TypeError(outcome)
        applied = outcome
        changes.append((applied.game.revision, 1_000, applied.events))
    return record_of(changes)


class Course:
    """A game of two with fair deals, and all its changes."""

    def __init__(self, rules: Ruleset, secret: bytes = SECRET) -> None:
        created = create(rules, SETTINGS, deal_commitment=commitment_to(secret))
        self.secret = secret
        self.game = created.game
        self.changes = [(1, 1_000, created.events)]
        for name in ("Ada", "Ben"):
            self.do(Join(name, deal_seed=f"of {name}".encode()))
        self.do(StartGame(HOST, self.shuffle))

    @property
    def shuffle(self) -> Shuffle:
        """The shuffles of the next deal."""
        return shuffle_for(self.game, seed_of(self.secret, self.game.deals + 1))

    @property
    def record(self) -> GameRecord:
        """The record of the game."""
        return record_of(self.changes)

    def shuffle_of_first(self, tiles: tuple[Tile, ...]) -> Shuffle:
        """Returns the shuffles of a tile set that follow from the seeds of the first deal."""
        words = words_of(self.game, seed_of(self.secret, 1))
        return Shuffle(shuffled(tiles, words), shuffled(tiles, words))

    def do(self, action: Action) -> None:
        """Applies an action. Raises TypeError if it is refused."""
        outcome = apply(self.game, action, 1_000)
        if not isinstance(outcome, Applied):
            raise TypeError(outcome)
        self.game = outcome.game
        self.changes.append((self.game.revision, 1_000, outcome.events))

    def draw(self) -> None:
        """Draws for the player whose turn it is, or passes; after a round starts the next one."""
        if isinstance(self.game.phase, RoundOver):
            return self.do(StartNextRound(1, self.shuffle))
        round_ = round_of(self.game)
        return self.do(DrawTile(round_.turn.seat) if round_.pool else Pass(round_.turn.seat))


def two_rounds() -> GameRecord:
    """Returns the record of a game of two rounds in which both players only draw."""
    course = Course(replace(SABRA, match_end=MatchEnd.FIXED_ROUNDS, match_rounds=2))
    while not isinstance(course.game.phase, Finished):
        course.draw()
    return course.record


def redealt() -> GameRecord:
    """Returns the record of a game in which a player with three pairs demanded a new deal."""
    rules = replace(SABRA, deal_three_pairs_reshuffle=DealThreePairsReshuffle.ON_REQUEST, deal_hand_size=21)
    courses = (Course(rules, bytes([number]) * SEED_BYTES) for number in range(256))
    course = next(one for one in courses if may_demand_redeal(round_of(one.game), 1, rules))
    course.do(RequestRedeal(1, course.shuffle))
    course.draw()
    return course.record


def short_game() -> GameRecord:
    """Returns the record of a game that was aborted after three draws."""
    course = Course(SABRA)
    for _ in range(3):
        course.draw()
    course.do(AbortGame(HOST))
    return course.record


def forgeries() -> Iterator[tuple[str, GameRecord]]:
    """Yields records that were forged, with what is wrong: all but the forged part is as in a fair game."""
    record = short_game()
    dealt = record.moves[0].dealt
    if not isinstance(dealt, RoundStarted):
        raise TypeError(dealt)

    def with_deal(**changes: Any) -> GameRecord:  # noqa: ANN401 - parts of a deal
        return with_move(0, dealt=replace(dealt, **changes))

    def with_move(index: int, **changes: Any) -> GameRecord:  # noqa: ANN401 - parts of a move
        moves = [*record.moves]
        moves[index] = replace(moves[index], **changes)
        return replace(record, moves=tuple(moves))

    def as_position(one: RoundStarted) -> RoundStarted:
        order = turn_order((1, 2), one.order[0], SABRA.turn_direction)
        return replace(one, draws=(), order=order, table=())

    shuffle = Course(SABRA).shuffle_of_first(SABRA.tiles(2))
    sizes = (Rack(1, in_order(shuffle.deal[:7])), Rack(2, in_order(shuffle.deal[7:30])))
    one_red = tuple(sorted(Tile(1) if tile == JOKER else tile for tile in SABRA.tiles(2)))
    of_set = Course(SABRA).shuffle_of_first(one_red)
    racks = (Rack(1, in_order(of_set.deal[:14])), Rack(2, in_order(of_set.deal[14:28])))
    order, draws = draw_for_start((1, 2), of_set.start_draw, SABRA)
    drawn = record.moves[1].tiles[0]
    yield "a set without jokers", with_deal(racks=racks, pool=of_set.deal[28:], order=order, draws=draws)
    yield "racks of 7 and 23 tiles", with_deal(racks=sizes, pool=shuffle.deal[30:])
    yield "another turn order", with_deal(order=dealt.order[::-1])
    yield "no start draw", with_deal(draws=())
    yield "another pool", with_deal(pool=dealt.pool[::-1])
    yield "a draw of another tile", with_move(1, tiles=(Tile(drawn % 52 + 1),))
    yield "a position instead of a deal", with_move(0, dealt=as_position(dealt))
    yield "no deal", replace(record, moves=(), deal_seed=b"")
    yield (
        "another seed of a player",
        replace(record, players=(replace(record.players[0], deal_seed=b"of Eve"), record.players[1])),
    )
    yield "another seed of the server", replace(record, deal_seed=bytes(SEED_BYTES))
    yield "another commitment", replace(record, deal_commitment=bytes(SEED_BYTES))
    yield "no commitment", replace(record, deal_commitment=b"")
    redeal = redealt()
    moved = [move for move in redeal.moves if move.kind is not MoveKind.REDEAL]
    yield "a deal left out", replace(redeal, moves=tuple(moved))


def entry(record: GameRecord) -> dict[str, str]:
    """Returns a record as text, and as the bytes of the contract's message in base64."""
    data = encode_record(record).SerializeToString(deterministic=True)
    return {"text": format_record(record), "message": base64.b64encode(data).decode()}


def as_json(count: int = COUNT) -> str:
    """Returns the content of the file."""
    content = {
        "format": FORMAT,
        "deals": [entry(random_record(random.Random(number))) for number in range(count)],
        "games": [entry(two_rounds()), entry(redealt())],
        "forgeries": [{"what": what, **entry(record)} for what, record in forgeries()],
    }
    return json.dumps(content, indent=1) + "\n"


if __name__ == "__main__":
    arguments = dict(enumerate(sys.argv))
    Path(arguments.get(2, PATH)).write_text(as_json(int(arguments.get(1, COUNT))), encoding="utf-8")
