"""The stored form of games: it loses nothing, says when it cannot be read, and stays readable; and no secret is shown.

`golden/format_1.jsonl` is a game as it was stored. A change of the code must go on reading it, so it is written only
when there is none of the format yet: `python tests/service/test_snapshot.py --write`, and with `--force` anew.
"""

import argparse
import json
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any, get_args

import pytest

if __name__ == "__main__":
    ROOT = Path(__file__).resolve().parents[2]
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from engine.events import Event, GameCreated, PlayerJoined, TileDrawn, replay
from engine.game import Finished, Game, Lobby, Phase, Playing, Rack, Round, RoundOver
from engine.melds import MeldKind, ProposedMeld
from engine.ruleset import JokersMaxPerSet, MatchEnd, Ruleset, TurnDirection
from engine.tiles import JOKER, Tile
from engine.turns import (
    Action,
    Applied,
    DrawTile,
    Join,
    Leave,
    Pass,
    PlayTiles,
    Resign,
    StartGame,
    StartNextRound,
    TimeOut,
    apply,
    create,
)
from harness import HISTORY, START_MS, Client, SeededChance
from random_play import Change, random_changes, random_ruleset, time_of
from rummikub.v1 import game_service_pb2 as gs
from service.faults import StoredFormatUnknown
from service.identity import new_shuffle
from service.sight import see_change, see_game
from service.storage.base import NO_ETAG, Entry, GameStore, Memo, Record, SeatToken, lineage
from service.storage.snapshot import (
    FINGERPRINT_BYTES,
    FORMAT,
    decode_entry,
    decode_memo,
    decode_record,
    encode_change,
    encode_memo,
    encode_record,
)

GOLDEN = Path(__file__).parent / "golden"
GAME_ID = "0123456789abcdef0123456789abcdef"
EVENT_TYPES: frozenset[type] = frozenset(get_args(Event))
PHASES: frozenset[type] = frozenset(get_args(Phase))


@dataclass(frozen=True)
class Stored:
    """A change as a store is given it: the game after it, the change's bytes, and what they are made of."""

    record: Record
    change: bytes
    nonce: bytes
    events: tuple[Event, ...]


def stored_changes(changes: Iterator[Change], rng: random.Random) -> Iterator[Stored]:
    """A game's changes as they are stored, with seat tokens."""
    etag, created_ms = NO_ETAG, 0
    digests = {seat: rng.randbytes(32) for seat in range(1, 5)}
    for change in changes:
        game, events = change.applied.game, change.applied.events
        created_ms = created_ms or change.now_ms
        nonce = rng.randbytes(16)
        data = encode_change(game.revision, change.now_ms, nonce, events)
        etag = lineage(etag, data)
        tokens = tuple(SeatToken(player.seat, digests[player.seat]) for player in game.players)
        yield Stored(Record(GAME_ID, game, etag, tokens, created_ms, change.now_ms), data, nonce, events)


def random_game(seed: int) -> tuple[Stored, ...]:
    """A whole random game as it is stored."""
    rng = random.Random(seed)
    return tuple(stored_changes(random_changes(seed, 2 + seed % 3, random_ruleset(rng)), rng))


GOLDEN_RULES = Ruleset(
    geometry_jokers=4,
    turn_direction=TurnDirection.COUNTERCLOCKWISE,
    jokers_max_per_set=JokersMaxPerSet.TWO,
    initial_meld_threshold=0,
    turn_time_limit_seconds=45,
    match_end=MatchEnd.FIXED_ROUNDS,
    match_rounds=2,
)


def a_group(rack: Rack) -> ProposedMeld | None:
    """The first group of three that a rack has, with a joker if there is one."""
    for tiles in combinations(sorted(set(rack.tiles), reverse=True), 3):
        naturals = [tile for tile in tiles if tile != JOKER]
        if len({(tile - 1) % 13 for tile in naturals}) == 1:
            return ProposedMeld(tiles, MeldKind.GROUP)
    return None


def golden_changes() -> Iterator[Change]:
    """A game with every type of event in every phase, made by the engine alone: players who play groups and wait."""
    chance = SeededChance(7)
    applied, now_ms = create(GOLDEN_RULES), START_MS
    yield Change(None, now_ms, applied)
    lobby = iter((Join("Ada"), Join("Ben"), Join("Zoë ✓"), Leave(2), Join("Cleo"), Join("Dan")))
    while not isinstance(applied.game.phase, Finished):
        action = next(lobby, None) or golden_action(applied.game, chance)
        now_ms = time_of(applied.game, action, now_ms)
        outcome = apply(applied.game, action, now_ms)
        assert isinstance(outcome, Applied), outcome
        applied = outcome
        yield Change(action, now_ms, applied)


def golden_action(game: Game, chance: SeededChance) -> Action:
    """Two rounds: the first until all pass with an empty pool, the second one turn until all but one resign."""
    match game.phase:
        case Lobby():
            return StartGame(1, new_shuffle(chance, GOLDEN_RULES))
        case RoundOver():
            return StartNextRound(2, new_shuffle(chance, GOLDEN_RULES))
        case Playing(round_) if round_.number == 1 or round_.turn.seat == round_.starter:
            return golden_turn(round_, game.revision)
        case _:
            return Resign(game.active_seats[0])


def golden_turn(round_: Round, revision: int) -> Action:
    """A group if there is one; else a draw now and then; else the time runs out, and with an empty pool all pass."""
    rack = round_.rack(round_.turn.seat)
    meld = a_group(rack) if revision < 20 else None
    if meld:
        return PlayTiles(rack.seat, (*(ProposedMeld(laid.tiles, laid.kind) for laid in round_.table), meld))
    if revision % 5 == 0:
        return DrawTile(rack.seat) if round_.pool else TimeOut()
    return TimeOut() if round_.pool else Pass(rack.seat)


@cache
def golden_game() -> tuple[Stored, ...]:
    """The golden game as it is stored."""
    return tuple(stored_changes(golden_changes(), random.Random(7)))


def golden_lines() -> Iterator[str]:
    """The golden game as text: a line a change; the snapshot where the phase is another after it, or soon will be."""
    game = golden_game()
    for number, stored in enumerate(game):
        following = game[number + 1].record.state if number + 1 < len(game) else None
        line = {"etag": stored.record.etag, "change": stored.change.decode()}
        if following is not stored.record.state:
            line["snapshot"] = encode_record(stored.record).decode()
        yield json.dumps(line, ensure_ascii=False)


# What is stored comes back


@pytest.mark.parametrize("seed", range(12))
def test_every_state_and_every_change_of_a_random_game_comes_back_equal(seed: int) -> None:
    game = random_game(seed)
    assert len(game) > 10
    for stored in game:
        assert decode_record(encode_record(stored.record)) == stored.record
        entry = Entry(stored.record.game.revision, "e7a9", stored.record.updated_ms, stored.nonce, stored.events)
        assert decode_entry(stored.change, "e7a9") == entry
    entries = [decode_entry(stored.change, stored.record.etag) for stored in game]
    assert replay(entry.events for entry in entries) == game[-1].record.game


def test_every_type_of_event_and_every_phase_comes_back_equal() -> None:
    game = golden_game()
    assert {type(event) for stored in game for event in stored.events} == EVENT_TYPES
    assert {type(stored.record.game.phase) for stored in game} == PHASES
    for stored in game:
        assert decode_record(encode_record(stored.record)) == stored.record
        assert decode_entry(stored.change, stored.record.etag).events == stored.events


def test_every_value_of_every_option_comes_back_equal() -> None:
    """Those that no engine plays yet too: what is stored does not judge."""
    seen = 0
    for option in fields(Ruleset):
        default = getattr(Ruleset(), option.name)
        values = list(type(default)) if isinstance(default, Enum) else [default + 1, 0]
        for value in values:
            chosen: dict[str, Any] = {option.name: value}
            rules = Ruleset(**chosen)
            record = Record(GAME_ID, Game(rules, 1), "", (), 1, 2)
            assert decode_record(encode_record(record)).game.ruleset == rules
            assert decode_entry(encode_change(1, 2, b"", (GameCreated(rules),)), "").events == (GameCreated(rules),)
            seen += 1
    assert seen > 60


def test_decoding_gives_the_types_that_the_engine_uses() -> None:
    """An equal number is not enough: what is loaded is asked on by type and by name."""
    for stored in golden_game():
        record = decode_record(encode_record(stored.record))
        assert repr(record) == repr(stored.record)
        assert repr(decode_entry(stored.change, "").events) == repr(stored.events)


def test_a_memo_comes_back_equal_whatever_its_bytes() -> None:
    fingerprint = bytes(range(FINGERPRINT_BYTES))
    for salt in (b"", b"\0", b"\xff" * 32, bytes(255)):
        for answer in (b"", b"\0\xff", salt + fingerprint):
            memo = Memo(fingerprint, answer, salt)
            assert decode_memo(encode_memo(memo)) == memo


# A ruleset is what was chosen


def stored_ruleset(rules: Ruleset) -> dict[str, Any]:
    """The options that a stored game names, of the snapshot and of the change alike."""
    record = Record(GAME_ID, Game(rules, 1), "", (), 1, 2)
    in_snapshot = json.loads(json.loads(encode_record(record))["game"]["ruleset"])
    (created,) = json.loads(encode_change(1, 2, b"", (GameCreated(rules),)))["events"]
    assert json.loads(created["ruleset"]) == in_snapshot
    assert isinstance(in_snapshot, dict)
    return in_snapshot


def test_a_stored_ruleset_names_only_what_differs_from_the_defaults() -> None:
    assert stored_ruleset(Ruleset()) == {}
    chosen = Ruleset(geometry_jokers=4, match_end=MatchEnd.TARGET_SCORE, match_target_score=200)
    assert stored_ruleset(chosen) == {"geometry_jokers": 4, "match_end": "TARGET_SCORE"}


# What cannot be read


def a_snapshot() -> dict[str, Any]:
    """The stored form of a game in the middle of a round."""
    stored = next(stored for stored in golden_game() if stored.record.game.revision == 20)
    snapshot: dict[str, Any] = json.loads(encode_record(stored.record))
    assert decode_record(json.dumps(snapshot).encode()) == stored.record
    return snapshot


def refused(data: bytes) -> None:
    """Neither a snapshot nor a change can be read of these bytes."""
    with pytest.raises(StoredFormatUnknown):
        decode_record(data)
    with pytest.raises(StoredFormatUnknown):
        decode_entry(data, "")


@pytest.mark.parametrize("number", [0, 2, 99, "1", None])
def test_another_format_number_is_refused(number: object) -> None:
    refused(json.dumps({**a_snapshot(), "format": number}).encode())
    for stored in golden_game()[:3]:
        change = {**json.loads(stored.change), "format": number}
        with pytest.raises(StoredFormatUnknown):
            decode_entry(json.dumps(change).encode(), "")


def test_a_missing_format_number_is_refused() -> None:
    snapshot = a_snapshot()
    del snapshot["format"]
    refused(json.dumps(snapshot).encode())


@pytest.mark.parametrize(
    "chosen",
    [
        {"no_such_option": 1},
        {"match_end": "BEST_OF_SEVEN"},
        {"match_end": 1},
        {"turn_direction": "clockwise"},
        {"geometry_jokers": 2, "run_wrap": "MOEBIUS"},
    ],
)
def test_an_unknown_option_and_an_unknown_value_are_refused(chosen: dict[str, object]) -> None:
    snapshot = a_snapshot()
    snapshot["game"]["ruleset"] = json.dumps(chosen)
    with pytest.raises(StoredFormatUnknown):
        decode_record(json.dumps(snapshot).encode())
    created = json.loads(golden_game()[0].change)
    created["events"][0]["ruleset"] = json.dumps(chosen)
    with pytest.raises(StoredFormatUnknown):
        decode_entry(json.dumps(created).encode(), "")


@pytest.mark.parametrize("name", ["TileStolen", "", "gamecreated", None])
def test_an_unknown_type_of_event_is_refused(name: str | None) -> None:
    change = json.loads(encode_change(3, 4, b"nonce", (PlayerJoined(1, "Ada"), TileDrawn(1, JOKER))))
    change["events"][1]["type"] = name
    with pytest.raises(StoredFormatUnknown):
        decode_entry(json.dumps(change).encode(), "")


@pytest.mark.parametrize("name", ["Paused", "", None])
def test_an_unknown_phase_is_refused(name: str | None) -> None:
    snapshot = a_snapshot()
    snapshot["game"]["phase"]["type"] = name
    with pytest.raises(StoredFormatUnknown):
        decode_record(json.dumps(snapshot).encode())


def test_truncated_bytes_are_refused_wherever_they_end() -> None:
    stored = golden_game()[20]
    snapshot = encode_record(stored.record)
    for length in range(len(snapshot)):
        with pytest.raises(StoredFormatUnknown):
            decode_record(snapshot[:length])
    for length in range(len(stored.change)):
        with pytest.raises(StoredFormatUnknown):
            decode_entry(stored.change[:length], "")
    for length in range(FINGERPRINT_BYTES + 1):
        with pytest.raises(StoredFormatUnknown):
            decode_memo(encode_memo(Memo(bytes(FINGERPRINT_BYTES), b"answer"))[:length])


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"null", b"[]", b"1", b'"text"', b"{}", b'{"format":1}'])
def test_bytes_that_are_no_game_are_refused(data: bytes) -> None:
    refused(data)


def paths(value: object, at: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Where the fields of a stored form are."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield (*at, key)
            yield from paths(part, (*at, key))


def test_a_missing_field_is_refused_whichever_it_is() -> None:
    found = [path for path in paths(a_snapshot()) if path[:-1] != ("tokens",)]
    assert ("game", "phase", "round", "pool") in found
    for path in found:
        snapshot = a_snapshot()
        within: Any = snapshot
        for key in path[:-1]:
            within = within[key]
        del within[path[-1]]
        with pytest.raises(StoredFormatUnknown):
            decode_record(json.dumps(snapshot).encode())


# What was stored goes on being readable


GOLDEN_FILES = sorted(GOLDEN.glob("format_*.jsonl"))


def golden_stored(path: Path) -> tuple[list[Entry], list[Record]]:
    """The entries and the snapshots of a golden file."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    entries = [decode_entry(line["change"].encode(), line["etag"]) for line in lines]
    return entries, [decode_record(line["snapshot"].encode()) for line in lines if "snapshot" in line]


def test_there_is_a_golden_file_of_every_format() -> None:
    assert [path.name for path in GOLDEN_FILES] == [f"format_{number}.jsonl" for number in range(1, FORMAT + 1)]


@pytest.mark.parametrize("path", GOLDEN_FILES, ids=lambda path: path.stem)
def test_a_golden_stored_game_is_read_as_the_game_that_its_changes_lead_to(path: Path) -> None:
    entries, records = golden_stored(path)
    assert {type(event) for entry in entries for event in entry.events} == EVENT_TYPES
    assert {type(record.game.phase) for record in records} == PHASES
    for record in records:
        before = entries[: record.game.revision]
        assert record.game == replay(entry.events for entry in before)
        assert (record.etag, record.updated_ms) == (before[-1].etag, before[-1].time_ms)
        assert record.created_ms == entries[0].time_ms


@pytest.mark.parametrize("path", GOLDEN_FILES, ids=lambda path: path.stem)
def test_a_golden_stored_game_is_equal_to_the_same_game_played_again(path: Path) -> None:
    entries, records = golden_stored(path)
    game = {stored.record.game.revision: stored for stored in golden_game()}
    assert [entry.revision for entry in entries] == list(game)
    for entry in entries:
        assert entry.events == game[entry.revision].events
        assert entry.nonce == game[entry.revision].nonce
    for record in records:
        again = game[record.game.revision].record
        assert replace(record, etag="") == replace(again, etag="")


@pytest.mark.parametrize("path", GOLDEN_FILES, ids=lambda path: path.stem)
def test_the_etags_of_a_golden_stored_game_are_the_lineage_of_its_bytes(path: Path) -> None:
    etag = NO_ETAG
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(lines) > 30
    for line in lines:
        etag = lineage(etag, line["change"].encode())
        assert line["etag"] == etag


# Etags


async def test_the_etags_of_a_played_game_verify_over_its_whole_stream(client: Client, store: GameStore) -> None:
    game = await client.new_game(players=3)
    for _ in range(20):
        await game.draw()
    seen = await game.see()
    entries = await store.events(game.game_id, 1, HISTORY)
    assert [entry.revision for entry in entries] == list(range(1, seen.revision + 1))
    etag = NO_ETAG
    for entry in entries:
        etag = lineage(etag, encode_change(entry.revision, entry.time_ms, entry.nonce, entry.events))
        assert entry.etag == etag
    assert seen.etag == etag
    listed = await client.games.ListTurns(gs.ListTurnsRequest(game_id=game.game_id, page_size=200))
    assert [change.etag for change in listed.changes] == [entry.etag for entry in entries]
    assert len({entry.nonce for entry in entries}) == len(entries)


def test_another_event_in_the_middle_of_a_history_changes_every_etag_after_it() -> None:
    game = golden_game()
    forged = [stored.change for stored in game]
    forged[5] = forged[5].replace(b'"Cleo"', b'"Cloe"')
    assert forged[5] != game[5].change
    etag, etags = NO_ETAG, []
    for change in forged:
        etag = lineage(etag, change)
        etags.append(etag)
    assert etags[:5] == [stored.record.etag for stored in game[:5]]
    assert not set(etags[5:]) & {stored.record.etag for stored in game}


async def test_two_games_with_equal_events_have_different_etags(client: Client, store: GameStore) -> None:
    """Without the nonce, the etag after a draw would tell the tile to whoever tries all 53."""
    games = [await client.new_game(players=2, start=False) for _ in range(2)]
    one, other = [await store.events(game.game_id, 1, 10) for game in games]
    assert len(one) == 3
    for entry, twin in zip(one, other, strict=True):
        assert (entry.revision, entry.time_ms, entry.events) == (twin.revision, twin.time_ms, twin.events)
        assert entry.etag != twin.etag
        assert entry.nonce != twin.nonce
    shown = [await game.see() for game in games]
    assert shown[0].etag != shown[1].etag


# Secrets


LEAVES = (int, str, bool, type(None), Enum, type)


def leaves(value: object) -> Iterator[object]:
    """Everything that can be reached from a value of dataclasses and tuples; anything else is a mistake."""
    if is_dataclass(value) and not isinstance(value, type):
        assert not isinstance(value, (SeatToken, Record, Entry)), "what is stored is not what is seen"
        for part in fields(value):
            yield from leaves(getattr(value, part.name))
    elif isinstance(value, tuple):
        for part in value:
            yield from leaves(part)
    else:
        assert isinstance(value, LEAVES), f"a {type(value).__name__} may hold anything"
        yield value


def test_no_nonce_and_no_digest_of_a_token_can_be_reached_from_what_anyone_sees() -> None:
    game = golden_game()
    secrets = {stored.nonce.hex() for stored in game}
    secrets |= {token.digest.hex() for stored in game for token in stored.record.tokens}
    assert len(secrets) == len(game) + 4
    assert {text for text in secrets if text in encode_record(game[-1].record).decode() + game[-1].change.decode()}
    reached = 0
    for stored in game:
        entry = decode_entry(stored.change, stored.record.etag)
        assert entry.nonce.hex() in secrets
        for seat in (None, 1, 2, 3, 4):
            for sight in (see_game(stored.record, seat, START_MS), see_change(entry, seat)):
                found = set(leaves(sight))
                assert stored.record.etag in found
                assert not secrets & found
                assert not any(secret in repr(sight) for secret in secrets)
                reached += len(found)
    assert reached > 1000


def test_the_walk_finds_a_secret_wherever_it_is() -> None:
    """The test above is worth what its walk is."""
    stored = golden_game()[-1]
    sight = see_game(stored.record, 1, START_MS)
    mistakes: list[tuple[Any, str]] = [(stored.record.tokens[0], "what is stored"), (stored.nonce, "bytes")]
    for mistake, told in mistakes:
        view = replace(sight.view, players=(*sight.view.players, mistake))
        with pytest.raises(AssertionError, match=told):
            list(leaves(replace(sight, view=view)))
    assert Tile(1) in set(leaves((Tile(1),)))


def write(*, force: bool) -> None:
    """Writes the golden file of the format."""
    path = GOLDEN / f"format_{FORMAT}.jsonl"
    if path.exists() and not force:
        sys.exit(f"{path.name} is there: games are stored so by now. A change of the format needs a new number.")
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(golden_lines()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A golden stored game: write it anew.")
    parser.add_argument("--write", action="store_true", required=True, help="write the file of the current format")
    parser.add_argument("--force", action="store_true", help="overwrite it: only as long as no game is stored anywhere")
    write(force=parser.parse_args().force)
