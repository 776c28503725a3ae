"""Records of games: made from events, played again by the rules, as text, and mutilated."""

import random
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path

import pytest

from engine.actions import AbortGame, Action, AnnounceRematch, RenewSeatToken, ReturnToSeat, StartNextRound, TimeOut
from engine.effort import Budget
from engine.events import PlayerAbsent
from engine.game import Aborted, Finished, Playing, RoundOver, round_of
from engine.melding.actions import PlayTiles
from engine.melding.analysis import Situation
from engine.melding.events import RoundStarted
from engine.melding.game import rules_of
from engine.melding.melds import ProposedMeld
from engine.melding.moves import BY_BOTS
from engine.melding.review import to_review
from engine.melding.ruleset import (
    SABRA,
    DealThreePairsReshuffle,
    JokerRetrievalMode,
    JokerRetrievalSameMeld,
    MatchEnd,
    Preset,
    Ruleset,
    TurnDraw,
    TurnInvalidSubmission,
    TurnPlayAfterDraw,
    TurnTimeoutDirty,
)
from engine.melding.solver import LegalTurn, Objective, best_turn
from engine.moves import OF_ALL_GAMES, MoveKind, RecordedPlayer
from engine.record import (
    GameRecord,
    RecordError,
    record_of,
    replayed,
)
from engine.record_text import RecordTextError, format_record, parse_record
from engine.room_settings import DEFAULT_SETTINGS, OpenSeat
from engine.seats import HOST
from engine.tiles import Tile
from engine.turns import Applied, apply
from support.cases import each_of
from support.random_play import ANALYSIS, Change, players_of, random_changes, random_room, random_shuffle
from support.records import comparable, recorded
from support.rooms import Rules, room, room_of
from support.soak import few_of

pytestmark = pytest.mark.slow

VARIANTS: dict[str, Rules] = {
    "River": replace(SABRA, turn_draw=TurnDraw.TWO_RIVER),
    "claims": replace(SABRA, turn_invalid_submission=TurnInvalidSubmission.PENALISE_ON_UNANIMOUS_CLAIM),
    "River and claims": replace(
        SABRA,
        turn_draw=TurnDraw.TWO_RIVER,
        turn_invalid_submission=TurnInvalidSubmission.PENALISE_ON_UNANIMOUS_CLAIM,
    ),
    "penalties": replace(SABRA, turn_invalid_submission=TurnInvalidSubmission.PENALISE),
    "redeals": replace(
        SABRA, players_max=3, deal_hand_size=21, deal_three_pairs_reshuffle=DealThreePairsReshuffle.ON_REQUEST
    ),
    "committed drafts": replace(SABRA, turn_timeout_dirty=TurnTimeoutDirty.COMMIT_IF_VALID_ELSE_REVERT),
    "draws one by one, and a knock": room_of(Preset.CAROUSEL),
    "play after a draw": replace(SABRA, turn_play_after_draw=TurnPlayAfterDraw.OTHER_TILES),
    "absences": room(SABRA, absent_after_timeouts=1, match_end=MatchEnd.FIXED_ROUNDS, match_rounds=4),
    "take-overs": room(SABRA, open_seat=OpenSeat.ANYONE, match_end=MatchEnd.FIXED_ROUNDS, match_rounds=4),
}
"""Rules under which all kinds of moves occur."""
ABOUT = {
    "River": {MoveKind.LAY_ON_RIVER},
    "claims": {MoveKind.SHOW, MoveKind.CLAIM, MoveKind.OBJECT},
    "penalties": {MoveKind.PENALTY},
    "redeals": {MoveKind.REDEAL},
    "draws one by one, and a knock": {MoveKind.KNOCK},
    "absences": {MoveKind.TIME_OUT, MoveKind.RETURN_TO_SEAT, MoveKind.RESIGN},
    "take-overs": {MoveKind.TAKE_OVER},
}
"""The moves that games under these rules must have."""
RULESETS: dict[str, Rules] = {
    **{preset.name: room_of(preset) for preset in Preset},
    **{f"random {seed}": random_room(random.Random(seed)) for seed in range(30)},
    **VARIANTS,
}
FEW = few_of(RULESETS, 18)


@cache
def played(name: str) -> tuple[Change, ...]:
    """Returns the first game of a sequence that has the moves that its rules are about."""
    first, ruleset, kinds = random.Random(name).randrange(1000), RULESETS[name], ABOUT.get(name, set())
    for seed in range(first, first + 500):
        game = random_changes(seed, players_of(ruleset, 1), ruleset)
        changes = tuple(change for change in game if not isinstance(change.action, AnnounceRematch))
        if kinds <= {move.kind for move in recorded(changes).moves}:
            return changes
    raise AssertionError(f"no game has moves of all of {kinds}")


@pytest.mark.unmeasured
@pytest.mark.parametrize("name", FEW)
def test_a_record_played_again_gives_the_game_after_every_move(name: str) -> None:
    changes = played(name)
    games = {change.applied.game.revision: change.applied.game for change in changes}
    record, count, last = recorded(changes), 0, changes[0].applied.game
    for step in replayed(record, ANALYSIS):
        last = step.after
        assert comparable(step.after) == comparable(games[step.move.revision])
        count += 1
    assert count == len(record.moves)
    *_, ended = games.values()
    assert comparable(last) == comparable(ended)


def test_records_have_moves_of_every_kind() -> None:
    moves = [move for name in VARIANTS for move in recorded(played(name)).moves]
    assert {move.kind for move in moves} | {MoveKind.ABORT} == BY_BOTS | OF_ALL_GAMES | {MoveKind.REDEAL}
    assert any(move.river_index is not None for move in moves)
    assert any(move.by_bot for move in moves)


@pytest.mark.parametrize("action", [RenewSeatToken, AbortGame])
def test_an_absent_player_may_return_by_an_action_that_is_no_move(action: type[RenewSeatToken | AbortGame]) -> None:
    """The seat plays on with the marks of a present player."""
    games = [change.applied.game for change in played("absences")]
    calm = ((i, game) for i, game in enumerate(games) if not any(player.wants_abort for player in game.players))
    players = ((i, player) for i, game in calm for player in game.players)
    place, absent = next((i, player.seat) for i, player in players if player.stand_in and not player.is_host)
    changes = list(played("absences")[: place + 1])
    returned = apply(games[place], action(absent), changes[-1].now_ms)
    assert isinstance(returned, Applied)
    assert len(returned.events) == 2
    changes.append(Change(None, changes[-1].now_ms, returned))
    record = parse_record(format_record(recorded(tuple(changes))))
    assert (record.moves[-1].kind, record.moves[-1].seat) == (MoveKind.RETURN_TO_SEAT, absent)
    *_, last = replayed(record)
    assert comparable(last.after) == comparable(returned.game)


def test_an_absent_player_may_return_by_starting_a_round() -> None:
    seeds = (random_changes(seed, 3, RULESETS["absences"]) for seed in range(100))
    changes, absent = next(found for game in seeds if (found := with_absent_player_between_rounds(game)))
    before, now_ms = changes[-1].applied.game, changes[-1].now_ms
    shuffle = random_shuffle(rules_of(before), random.Random(1), len(before.active_seats))
    started = apply(before, StartNextRound(absent, shuffle), now_ms)
    assert isinstance(started, Applied)
    record = parse_record(format_record(recorded((*changes, Change(None, now_ms, started)))))
    assert (record.moves[-1].kind, record.moves[-1].seat) == (MoveKind.DEAL, absent)
    *_, last = replayed(record)
    assert comparable(last.after) == comparable(started.game)
    assert not last.after.player(absent).stand_in


def with_absent_player_between_rounds(changes: Iterator[Change]) -> tuple[tuple[Change, ...], int] | None:
    """Returns a game up to a pause between rounds with an absent player, and their seat; None if it has none."""
    so_far: list[Change] = []
    for change in changes:
        so_far.append(change)
        game = change.applied.game
        if isinstance(game.phase, RoundOver):
            for player in game.players:
                if player.stand_in:
                    return tuple(so_far), player.seat
    return None


def until_a_turn(rounds: int, rules: Ruleset) -> list[Change]:
    """Returns the changes of a random game until the last turn of a round at which all players are present."""
    for seed in range(100):
        changes = list(random_changes(seed, 3, rules))
        for place, change in reversed([*enumerate(changes)]):
            game = change.applied.game
            is_absent = any(player.stand_in for player in game.players)
            if isinstance(game.phase, Playing) and len(game.results) == rounds and not is_absent:
                return changes[: place + 1]
    raise AssertionError(f"no game goes on after {rounds} rounds")


@pytest.mark.parametrize("rounds", [0, 1])
def test_votes_are_no_moves_and_an_abort_is_the_last_one(rounds: int) -> None:
    """The host aborts the first round alone; later it takes the votes of all."""
    rules = replace(SABRA, match_end=MatchEnd.FIXED_ROUNDS, match_rounds=2)
    changes = until_a_turn(rounds, rules)
    before, now_ms = changes[-1].applied.game, changes[-1].now_ms
    silent = [player.seat for player in before.players if not player.resigned and not player.wants_abort]
    voters = silent if rounds else [HOST]
    for seat in voters:
        voted = apply(changes[-1].applied.game, AbortGame(seat), now_ms)
        assert isinstance(voted, Applied)
        changes.append(Change(AbortGame(seat), now_ms, voted))
    aborted = changes[-1].applied.game
    assert isinstance(aborted.phase, Aborted)
    record = parse_record(format_record(recorded(tuple(changes))))
    assert [move.kind for move in record.moves].index(MoveKind.ABORT) == len(record.moves) - 1
    *_, last = replayed(record)
    assert comparable(last.after) == comparable(aborted)
    for place in range(0, len(record.moves), 1 + len(record.moves) // 20):
        move = record.moves[place]
        broken = replace(move, revision=record.moves[place - 1].revision if place else 0)
        with pytest.raises(RecordError, match="does not follow") as refused:
            list(replayed(replace(record, moves=(*record.moves[:place], broken, *record.moves[place + 1 :]))))
        assert refused.value.move == place


def test_a_time_out_may_commit_a_draft() -> None:
    changes, before = [], None
    for change in random_changes(1, 2, RULESETS["committed drafts"]):
        action = change.action
        if before and isinstance(action, PlayTiles):
            deadline_ms = round_of(before).turn.deadline_ms
            assert deadline_ms
            committed = apply(before, TimeOut(action.table), deadline_ms + 1)
            assert isinstance(committed, Applied)
            changes.append(Change(None, deadline_ms + 1, committed))
            break
        changes.append(change)
        before = change.applied.game
    record = parse_record(format_record(recorded(tuple(changes))))
    assert record.moves[-1].kind is MoveKind.TIME_OUT
    assert record.moves[-1].table
    *_, last = replayed(record)
    assert comparable(last.after) == comparable(changes[-1].applied.game)


@pytest.mark.unmeasured
@each_of("action", [RenewSeatToken(1), AbortGame(1), ReturnToSeat(1)])
def test_a_record_has_every_return_of_an_absent_player(action: Action) -> None:
    changes = played_with_an_absent_player()
    last = changes[-1]
    returned = apply(last.applied.game, action, last.now_ms)
    assert isinstance(returned, Applied)
    assert not returned.game.player(1).stand_in
    record = recorded((*changes, Change(action, last.now_ms, returned)))
    assert record.moves[-1].kind is MoveKind.RETURN_TO_SEAT
    *_, step = replayed(record)
    assert comparable(step.after) == comparable(returned.game)


@cache
def played_with_an_absent_player() -> tuple[Change, ...]:
    """Returns a game of two rounds to the first absence of seat 1, before which it had no host."""
    rules = room(SABRA, absent_after_timeouts=1, match_end=MatchEnd.FIXED_ROUNDS, match_rounds=2)
    for seed in range(100):
        changes: list[Change] = []
        for change in random_changes(seed, 3, rules):
            changes.append(change)
            if any(isinstance(event, PlayerAbsent) and event.seat == 1 for event in change.applied.events):
                if not change.applied.game.player(1).is_host:
                    return tuple(changes)
                break
    raise AssertionError("nobody was absent")


# Review


@pytest.mark.parametrize("name", ["SABRA", "River", "play after a draw"])
def test_a_move_missed_what_the_best_turn_gains_beyond_it(name: str) -> None:
    kinds = set()
    for index, step in enumerate(islice(replayed(recorded(played(name)), ANALYSIS), 40)):
        move = to_review(index, step)
        if move is None:
            continue
        kinds.add(move.kind)
        assert (move.move, move.revision, move.seat) == (index, step.move.revision, step.move.seat)
        assert move.kind is MoveKind.PLAY or move.gained(Objective.MOST_TILES) == 0
        for objective in Objective:
            best = best_turn(move.situation, objective, Budget(nodes=2_000))
            if best.turn is None:
                assert move.kind is not MoveKind.PLAY
                continue
            assert isinstance(best.turn, LegalTurn)
            assert isinstance(move.situation, Situation)
            index_pulled = best.turn.river_index
            pulled = 0 if index_pulled is None else len(move.situation.river) - index_pulled - 1
            if objective is Objective.MOST_TILES:
                net = len(best.turn.tiles) - pulled
                assert move.missed(best.turn, objective) == max(0, net - move.gained(objective))
    assert {MoveKind.PLAY, MoveKind.DRAW} <= kinds


# Text


@pytest.mark.parametrize("mode", JokerRetrievalMode)
@pytest.mark.parametrize("same_meld", JokerRetrievalSameMeld)
def test_the_text_of_a_record_has_an_option_that_otherwise_follows_another(
    mode: JokerRetrievalMode, same_meld: JokerRetrievalSameMeld
) -> None:
    ruleset = replace(
        SABRA, joker_retrieval_mode=mode, joker_retrieval_same_meld=same_meld, jokers_may_lead=not SABRA.jokers_may_lead
    )
    record = GameRecord(ruleset, DEFAULT_SETTINGS, 0, (RecordedPlayer(1, "Ada"), RecordedPlayer(2, "Ben")), (), (), ())
    assert parse_record(format_record(record)) == record


@pytest.mark.unmeasured
@pytest.mark.parametrize("name", FEW)
def test_the_text_of_a_record_is_read_as_the_same_record(name: str) -> None:
    record = recorded(played(name))
    text = format_record(record)
    assert parse_record(text) == record
    assert format_record(parse_record(text)) == text


def beginning(record: GameRecord) -> GameRecord:
    """Returns the first moves of the first round."""
    deals = [place for place, move in enumerate(record.moves) if move.kind is MoveKind.DEAL]
    end = min(50, *(place - 1 for place in (*deals[1:], len(record.moves))))
    return replace(record, moves=record.moves[:end], rounds=(), winners=())


def mutilations(text: str, rng: random.Random) -> Iterator[str]:
    """Yields texts that differ from a record's in a line, a word or a character."""
    lines = text.splitlines()
    for _ in range(60):
        place = rng.randrange(len(lines))
        line = lines[place]
        words = line.split(" ")
        word = rng.randrange(len(words))
        other = rng.choice(lines).split(" ")
        match rng.randrange(7):
            case 0:
                changed = [*lines[:place], *lines[place + 1 :]]
            case 1:
                changed = [*lines[:place], line, *lines[place:]]
            case 2:
                changed = rng.sample(lines, len(lines)) if rng.random() < 0.1 else [*lines[place:], *lines[:place]]
            case 3:
                words[word] = rng.choice(other)
                changed = [*lines[:place], " ".join(words), *lines[place + 1 :]]
            case 4:
                cut = rng.randrange(len(line))
                changed = [*lines[:place], line[:cut], *lines[place + 1 :]]
            case 5:
                at = rng.randrange(len(line))
                changed = [*lines[:place], line[:at] + rng.choice("09:/|[]{}RJ.\u2028é -") + line[at + 1 :]]
                changed += lines[place + 1 :]
            case _:
                del words[word]
                changed = [*lines[:place], " ".join(words), *lines[place + 1 :]]
        yield "\n".join(changed)


@pytest.mark.parametrize(
    "name",
    [
        "River and claims",
        "redeals",
        *(
            pytest.param(name, marks=pytest.mark.unmeasured)
            for name in ("penalties", "GUIDE_B", "INTL_OFFICIAL", "random 3")
        ),
    ],
)
def test_a_mutilated_record_is_refused_with_a_place_or_is_a_legal_game(name: str) -> None:
    rng, refused = random.Random(name), 0
    record = beginning(recorded(played(name)))
    for text in mutilations(format_record(record), rng):
        place = refusal(text)
        refused += place is not None
        if place:
            assert place[0] >= 1
            assert place[1] >= 1
    assert refused >= 30


def refusal(text: str) -> tuple[int, int] | None:
    """Returns the line and column, or the move and 1, at which a text is refused; None for a legal game."""
    try:
        record = parse_record(text)
    except RecordTextError as error:
        return error.line, error.column
    try:
        for _ in replayed(record, ANALYSIS):
            pass
    except RecordError as error:
        return 1 if error.move is None else error.move + 1, len(str(error))
    return None


# Records by hand

PAGE = Path(__file__).parents[2] / "docs/record.md"
EXAMPLE = PAGE.read_text().partition("```text\n")[2].partition("```")[0]


def test_the_example_of_the_page_is_a_legal_record() -> None:
    record = parse_record(EXAMPLE)
    assert format_record(record) == EXAMPLE
    steps = list(replayed(record))
    assert isinstance(steps[-1].after.phase, Finished)


def test_a_record_may_end_before_the_game_and_have_comments() -> None:
    text = EXAMPLE.partition("12 11.000")[0].replace("created", "# a comment\n\ncreated")
    assert len(list(replayed(parse_record(text)))) == 8


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("rummikub-record 1", "rummikub-record 2", "line 1, column 1: 'rummikub-record 2' is not the title"),
        (EXAMPLE, "", "line 1, column 1: the text is empty"),
        ("preset SABRA", "preset CHESS", "line 2, column 8: 'CHESS' is not a preset"),
        ("preset SABRA", "preset SABRA\npreset SABRA", "line 3, column 1: 'preset' does not follow preset"),
        ("option deal_hand_size 6", "option hand 6", "line 3, column 8: 'hand' is not an option"),
        ("option deal_hand_size 6", "option deal_hand_size", "has 2 words: expected option NAME VALUE"),
        ("option deal_hand_size 6", "option deal_hand_size x", "'x' is not a value of this option"),
        ("option deal_hand_size 6", "option jokers_may_lead 1", "'1' is not a value of this option"),
        ("option deal_hand_size 6", "option run_wrap ON", "'ON' is not a value of this option"),
        ("option deal_hand_size 6", "option deal_hand_size 6\noption deal_hand_size 6", "is given twice"),
        ("option deal_hand_size 6", "option deal_hand_size 99", "the options deal_hand_size have no such value"),
        ("created 1800000000.000\n", "", "line 5, column 1: 'player' comes before the record's time"),
        ("created 1800000000.000", "created now", "line 5, column 9: 'now' is not a time"),
        (EXAMPLE.partition("created")[2], "", "line 5, column 1: 'created' has 1 words"),
        ("created" + EXAMPLE.partition("created")[2], "", "column 1: the record ends without its time"),
        ("player 1 person Ada", "player 1", "is not a player: expected player SEAT person NAME"),
        ("player 1 person Ada", "player x person Ada", "'x' is not a seat"),
        ("player 1 person Ada", "player 1 human Ada", "'human' is not a player's kind"),
        ("player 1 person Ada", f"player 1 person {'A' * 41}", "is not a name: expected at most 40"),
        ("5 4.000 2 draw B6", "5 4.000 2", "is not a move: expected REVISION SECONDS SEAT VERB"),
        ("5 4.000 2 draw B6", "05 4.000 2 draw B6", "'05' is not a revision"),
        ("5 4.000 2 draw B6", "5 4 2 draw B6", "'4' is not a time"),
        ("5 4.000 2 draw B6", "5 4 x jump", "'4' is not a time"),
        ("5 4.000 2 draw B6", "5 4.000 2 jump", "'jump' is not a move"),
        ("5 4.000 2 draw B6", "5 4.000 2 pass B6", "'B6' follows pass: expected nothing"),
        ("5 4.000 2 draw B6", "5 4.000 2 play pull", "'pull' pulls nothing"),
        ("5 4.000 2 draw B6", "5 4.000 2 timeout play [X]", "line 9, column 25: 'X' is not a tile"),
        ("deal 1:B1", "deal 1B1", "'1B1' is not a start draw"),
        (
            EXAMPLE[EXAMPLE.index(" / {B6") : EXAMPLE.index("\n5 4.000")],
            "",
            "a part is missing: expected draws / order / racks / pool",
        ),
        ("end WENT_OUT", "end DRAWN", "is not a round's end"),
        ("1:40", "1:x", "'1:x' is not a seat's points"),
        ("winners 1", "winners", "'winners' names nobody"),
        ("winners 1", "losers 1", "'losers' begins no line of a record"),
        ("winners 1", f"winners {'1 ' * 10_000}", "line 24, column 16385: the line has 20008 characters"),
        ("player 1 person Ada", "player 1 person A\x07", "is not a name: expected at most 40"),
        ("5 4.000", "5 1000000000.000", "'1000000000.000' is not a time"),
    ],
)
def test_a_text_that_is_no_record_names_line_and_column(old: str, new: str, error: str) -> None:
    assert old in EXAMPLE
    with pytest.raises(RecordTextError, match=r"^line [0-9]+, column [0-9]+: ") as refused:
        parse_record(EXAMPLE.replace(old, new, 1))
    assert error in str(refused.value)


@pytest.mark.parametrize(
    ("old", "new", "move", "error"),
    [
        ("4 3.000 0 deal", "4 3.000 1 deal", 0, "a deal has the seat of an absent player"),
        ("1{R4 B4", "1{R5 B4", 0, "racks and pool are not the tile set"),
        (" / 2 1 / ", " / 1 2 / ", 0, "lead to another turn order"),
        (" / 2 1 / ", " / 2 2 / ", 0, "the turn order is not of the seats"),
        ("1:B1 2:O4", "1:B1", 0, "the start draw is incomplete"),
        ("1:B1 2:O4", "1:B1 2:P4", 0, "the start draw has a tile that was not there"),
        (" 1{R4 B4 K2 K4 O12 J} ", " 1*{R4 B4 K2 K4 O12 J} ", 0, "a player has melded before"),
        (" 1{R4 B4 K2 K4 O12 J} ", " 3{R4 B4 K2 K4 O12 J} ", 0, "expected racks of the seats"),
        ("5 4.000 2 draw B6", "5 2.000 2 draw B6", 1, "the revision or the time does not follow"),
        ("5 4.000 2 draw B6", "5 4.000 2 draw B7", 1, "the tiles are not the next ones of the pool"),
        ("5 4.000 2 draw B6", "5 4.000 4 draw B6", 1, "there is no player in seat 4"),
        ("5 4.000 2 draw B6", "5 4.000 2 timeout B6", 1, "no turn has passed its deadline"),
        ("5 4.000 2 draw B6", "5 100.000 1 timeout B6", 1, "by the rules this move is TIME_OUT of seat 2"),
        ("5 4.000 2 draw B6", "5 100.000 2 timeout B7", 1, "the tiles are not the next ones of the pool"),
        ("5 4.000 2 draw B6", "5 4.000 2 show [B2]", 1, ""),
        ("5 4.000 2 draw B6", "5 4.000 2 penalty", 1, ""),
        ("5 4.000 2 draw B6", "5 4.000 1 claim", 1, ""),
        ("5 4.000 2 draw B6", "5 4.000 1 object", 1, ""),
        ("5 4.000 2 draw B6", "5 4.000 2 lay B6 B7", 1, "the move is incomplete"),
        ("4 3.000 0 deal", "3 2.000 1 timeout\n4 3.000 0 deal", 0, ""),
        ("4 3.000 0 deal", "3 2.000 1 claim\n4 3.000 0 deal", 0, ""),
        ("4 3.000 0 deal", "3 2.000 1 show .\n4 3.000 0 deal", 0, ""),
        ("2:-40", "2:-41", None, "round 1 ended WENT_OUT with the points"),
        ("end WENT_OUT 1:40 2:-40\n", "", None, "the moves end 1 rounds"),
        ("winners 1", "winners 2", None, "the winners are"),
        ("player 2 person Ben\n", "", None, "expected 2 to 4 players"),
        ("player 2 person Ben", "player 2 person Ada", None, "two players have one name"),
        ("player 2 person Ben", "player 9 person Ben", None, "expected seats from 1 to 4"),
    ],
)
def test_a_record_that_breaks_a_rule_names_the_move(old: str, new: str, move: int | None, error: str) -> None:
    assert old in EXAMPLE
    with pytest.raises(RecordError) as refused:
        list(replayed(parse_record(EXAMPLE.replace(old, new, 1))))
    assert error in str(refused.value)
    assert refused.value.move == move


def test_a_round_after_an_abandoned_game_is_refused() -> None:
    """All players are absent then, so no player could have started it."""
    beginning, _, _ = EXAMPLE.partition("5 4.000")
    timed = beginning.replace("created", "option absent_after_timeouts 1\ncreated")
    record = parse_record(f"{timed}5 100.000 2 timeout B6\n6 200.000 1 timeout R9\n")
    *_, last = replayed(record)
    assert isinstance(last.after.phase, Finished)
    again = replace(record.moves[0], revision=7, time_ms=record.moves[-1].time_ms + 1)
    with pytest.raises(RecordError, match="the game is over") as refused:
        list(replayed(replace(record, moves=(*record.moves, again))))
    assert refused.value.move == 3


@pytest.mark.parametrize("name", [",Ann, Lee", "\u0645\u06cc\u200c\u0634\u0648\u062f", "a  b", "#1"])
def test_a_name_is_the_rest_of_its_line(name: str) -> None:
    record = parse_record(EXAMPLE.replace("person Ada", f"person {name}"))
    assert record.players[0].name == name
    assert f"player 1 person {name}\n" in format_record(record)


def test_a_record_names_programs() -> None:
    text = EXAMPLE.replace("person Ada", "program Ada")
    record = parse_record(text)
    assert [player.is_program for player in record.players[:2]] == [True, False]
    assert "player 1 program Ada\n" in format_record(record)
    assert list(replayed(record))[-1].after.player(1).is_program


def test_an_illegal_play_with_other_declarations_than_jokers_stays_illegal() -> None:
    rules = RULESETS["claims"]
    odd = ProposedMeld((Tile(1), Tile(2), Tile(3)), None, (Tile(5),))
    for seed in range(200):
        changes = list(islice(random_changes(seed, 2, rules), 15))
        while changes and not any(isinstance(event, RoundStarted) for event in changes[-1].applied.events):
            del changes[-1]
        if not changes:
            continue
        change = changes[-1]
        game = change.applied.game
        round_ = round_of(game)
        rack = round_.rack(round_.turn.seat).tiles
        if not set(odd.tiles) <= set(rack):
            continue
        shown = apply(game, PlayTiles(round_.turn.seat, (odd,)), change.now_ms)
        assert isinstance(shown, Applied)
        changes.append(Change(None, change.now_ms, shown))
        record = parse_record(format_record(recorded(tuple(changes))))
        assert record.moves[-1].kind is MoveKind.SHOW
        assert len(list(replayed(record))) == len(record.moves)
        return
    raise AssertionError("no player was dealt the tiles")


def test_a_history_needs_its_creation() -> None:
    with pytest.raises(ValueError, match="creation"):
        record_of(())
