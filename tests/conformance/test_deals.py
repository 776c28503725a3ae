"""The deals for other programs: they are those of this checkout, fair, and of all kinds."""

import json

from conformance.make_deals import FORMAT, PATH, as_json
from engine.discard.ruleset import Ruleset as DiscardRuleset
from engine.melding.ruleset import DealOrder, Ruleset, StartDrawTile
from engine.record import replayed
from engine.record_text import parse_record
from service.cli.verify import Noted, checks


def test_the_file_is_that_of_this_checkout() -> None:
    assert PATH.read_text(encoding="utf-8") == as_json(), "run `make deals`"


def test_all_deals_are_fair_and_of_all_kinds() -> None:
    content = json.loads(PATH.read_text(encoding="utf-8"))
    assert content["format"] == FORMAT
    records = [parse_record(one["text"]) for one in content["deals"]]
    for record in records:
        assert len(list(replayed(record))) == 1
    rules = [record.ruleset for record in records]
    melding = [one for one in rules if isinstance(one, Ruleset)]
    assert {one.deal_order for one in melding} == {*DealOrder}
    assert {one.start_draw_tile for one in melding} == {*StartDrawTile}
    assert {one.deal_fixed_jokers for one in melding} == {0, 1}
    assert len({one.preset for one in rules if isinstance(one, DiscardRuleset)}) == 3


def test_games_are_fair_and_forgeries_are_not() -> None:
    content = json.loads(PATH.read_text(encoding="utf-8"))
    failures = {
        one.get("what", "fair"): [
            line for line in checks(parse_record(one["text"]), Noted()) if line.startswith("FAILED")
        ]
        for one in (*content["games"], *content["forgeries"])
    }
    assert [what for what, failed in failures.items() if not failed] == ["fair"]
