"""Generates deals.json: recorded deals with their seeds, for programs that check deals (docs/fair-deal.md).

Usage: make deals, or `PYTHONPATH=tests python -m conformance.make_deals 10000 FILE` for another number of deals
"""

import base64
import json
import random
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from engine.actions import Join, StartGame
from engine.discard.presets import AMERICAN, OKEY_101
from engine.discard.ruleset import OKEY
from engine.fair_deal import SEED_BYTES, commitment_to, seed_of, shuffle_for
from engine.melding.ruleset import OPTIONS, SABRA, problems, with_options
from engine.record import GameRecord, record_of
from engine.record_text import format_record
from engine.room_settings import DEFAULT_SETTINGS, FairDeal
from engine.seats import HOST
from engine.turns import Applied, apply, create
from engine.unions import Ruleset
from service.codec.records import encode_record

PATH: Final = Path(__file__).with_name("deals.json")
FORMAT: Final = "rummikub-deals/1"
COUNT: Final = 40
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


def deals(count: int) -> Iterator[dict[str, str]]:
    """Yields records as text, and as the bytes of the contract's message in base64."""
    for number in range(count):
        record = random_record(random.Random(number))
        data = encode_record(record).SerializeToString(deterministic=True)
        yield {"text": format_record(record), "message": base64.b64encode(data).decode()}


def as_json(count: int = COUNT) -> str:
    """Returns the content of the file."""
    return json.dumps({"format": FORMAT, "deals": list(deals(count))}, indent=1) + "\n"


if __name__ == "__main__":
    arguments = dict(enumerate(sys.argv))
    Path(arguments.get(2, PATH)).write_text(as_json(int(arguments.get(1, COUNT))), encoding="utf-8")
