"""Records of games: made from events, played again by the rules, as text, and mutilated."""

import random
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import pytest

from engine.game import Finished, Game, Playing, RoundOver
from engine.presets import PRESETS
from engine.record import GameRecord, RecordError, record_of, replayed
from engine.record_text import RecordTextError, format_record, parse_record
from engine.ruleset import SABRA, TurnDraw, TurnInvalidSubmission
from support.random_play import ANALYSIS, Change, players_of, random_changes, random_ruleset

RULESETS = {
    **{preset.name: ruleset for preset, ruleset in PRESETS.items()},
    **{f"random {seed}": random_ruleset(random.Random(seed)) for seed in range(30)},
    "River": replace(SABRA, turn_draw=TurnDraw.TWO_RIVER),
    "claims": replace(SABRA, turn_invalid_submission=TurnInvalidSubmission.PENALISE_ON_UNANIMOUS_CLAIM),
    "River and claims": replace(
        SABRA,
        turn_draw=TurnDraw.TWO_RIVER,
        turn_invalid_submission=TurnInvalidSubmission.PENALISE_ON_UNANIMOUS_CLAIM,
    ),
    "penalties": replace(SABRA, turn_invalid_submission=TurnInvalidSubmission.PENALISE),
}


@cache
def played(name: str) -> tuple[Change, ...]:
    return tuple(random_changes(random.Random(name).randrange(1000), players_of(RULESETS[name], 1), RULESETS[name]))


def recorded(changes: tuple[Change, ...]) -> GameRecord:
    return record_of((change.applied.game.revision, change.now_ms, change.applied.events) for change in changes)


def comparable(game: Game) -> Game:
    """Returns a game without what a record does not have: the reasons of shown plays."""
    if not isinstance(game.phase, Playing | RoundOver | Finished):
        return game
    shown = game.phase.round.shown_play
    round_ = replace(game.phase.round, shown_play=shown and replace(shown, reasons=()))
    return replace(game, phase=replace(game.phase, round=round_))


@pytest.mark.parametrize("name", RULESETS)
def test_a_record_played_again_gives_the_game_after_every_move(name: str) -> None:
    changes = played(name)
    games = {change.applied.game.revision: change.applied.game for change in changes}
    record, count, last = recorded(changes), 0, changes[0].applied.game
    for step in replayed(record, ANALYSIS):
        last = step.after
        assert comparable(step.after) == comparable(games[step.move.revision])
        count += 1
    assert count == len(record.moves)
    assert comparable(last) == comparable(changes[-1].applied.game)


# Text


@pytest.mark.parametrize("name", RULESETS)
def test_the_text_of_a_record_is_read_as_the_same_record(name: str) -> None:
    record = recorded(played(name))
    text = format_record(record)
    read = parse_record(text)
    assert format_record(read) == text
    assert [comparable(step.after) for step in replayed(read, ANALYSIS)] == [
        comparable(step.after) for step in replayed(record, ANALYSIS)
    ]
    assert replace(read, moves=()) == replace(record, moves=())


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


@pytest.mark.parametrize("name", ["SABRA", "River and claims", "penalties", "GUIDE_B", "INTL_OFFICIAL", "random 3"])
def test_a_mutilated_record_is_refused_with_a_place_or_is_a_legal_game(name: str) -> None:
    rng, refused = random.Random(name), 0
    record = recorded(played(name))
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
