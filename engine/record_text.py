"""The text of a record: a header and one line a move, whose words are its family's. docs/record.md has the grammar.

```
rummikub-record 1
preset SABRA
option turn_time_limit_seconds 60
created 1800000000.000
player 1 person Ada
player 2 hard Bot 1
commitment 2f1e...
seed 0 81c0...
seed 1 00ff
4 10.000 0 deal 1:R7 2:B3 / 1 2 / 1{R1 R2} 2{B3 J} / {K1 K2}
5 12.500 1 draw K1
6 20.125 2 play [R3 R4 R5] | [B6 K6 O6]
end WENT_OUT 1:-12 2:12
winners 2
```
"""

import re
from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import Final

from engine.fair_deal import PLAYER_SEED_MAX, SEED_BYTES
from engine.family import DEFAULT_RULESET, MoveText, Presets, move_text_of, presets_of, presets_with
from engine.game import RoundEnd
from engine.moves import Move, MoveKind, RecordedPlayer
from engine.notation import NotationError, Piece, parse_seat
from engine.options import text_of
from engine.record import GameRecord, RoundScore
from engine.room_settings import DEFAULT_SETTINGS, RoomSettings
from engine.seats import BotLevel
from engine.unions import Ruleset

TITLE: Final = "rummikub-record 1"
NAME_MAX: Final = 40
"""Most characters of a player's name."""
LINE_MAX: Final = 16_384
"""Most characters of a line. A table or a deal of the largest tile set has fewer."""

_VERBS: Final = {
    MoveKind.DEAL: "deal",
    MoveKind.REDEAL: "redeal",
    MoveKind.PLAY: "play",
    MoveKind.DRAW: "draw",
    MoveKind.LAY_ON_RIVER: "lay",
    MoveKind.PASS_TURN: "pass",
    MoveKind.SHOW: "show",
    MoveKind.CLAIM: "claim",
    MoveKind.OBJECT: "object",
    MoveKind.PENALTY: "penalty",
    MoveKind.TAKE_DISCARD: "take",
    MoveKind.DISCARD: "discard",
    MoveKind.SHOW_INDICATOR: "indicator",
    MoveKind.LAY_TILES: "meld",
    MoveKind.RETURN_DISCARD: "putback",
    MoveKind.FINISH: "finish",
    MoveKind.FALSE_FINISH: "misfinish",
    MoveKind.TAKE_TRUMP: "trump",
    MoveKind.FOOT: "foot",
    MoveKind.KNOCK: "knock",
    MoveKind.TIME_OUT: "timeout",
    MoveKind.RESIGN: "resign",
    MoveKind.TAKE_OVER: "takeover",
    MoveKind.RETURN_TO_SEAT: "return",
    MoveKind.ABORT: "abort",
}
_KINDS: Final = {verb: kind for kind, verb in _VERBS.items()}
_WITHOUT_WORDS: Final = {
    MoveKind.PASS_TURN,
    MoveKind.CLAIM,
    MoveKind.OBJECT,
    MoveKind.SHOW_INDICATOR,
    MoveKind.FALSE_FINISH,
    MoveKind.RESIGN,
    MoveKind.RETURN_TO_SEAT,
    MoveKind.ABORT,
}
_BOT: Final = "bot"
"""The word before the verb of a move that a bot made for an absent player."""
_PERSON: Final = "person"
_PROGRAM: Final = "program"
_LEVELS: Final = {_PERSON: None, _PROGRAM: None, **{level.name.lower(): level for level in BotLevel}}
_KIND_AND_NAME: Final = "person NAME, or the level of a bot and its name"
_CREATED: Final = re.compile(r"[0-9]{1,12}\.[0-9]{3}")
_SINCE: Final = re.compile(r"[0-9]{1,9}\.[0-9]{3}")
_JOINERS: Final = dict.fromkeys(map(ord, "\u200c\u200d"))
"""Zero-width joiners, which names may have inside, are not printable alone."""


class RecordTextError(ValueError):
    """A text that is no record.

    Attributes:
        line: The number of the line, from 1.
        column: Where the invalid part begins in the line, from 1.
    """

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(f"line {line}, column {column}: {message}")
        self.line = line
        self.column = column


# Formatting


def format_record(record: GameRecord) -> str:
    """Returns the text of a record, with a line break at its end."""
    return "".join(f"{line}\n" for line in _lines(record))


def _lines(record: GameRecord) -> Iterator[str]:
    yield TITLE
    yield from _option_lines(record.ruleset, record.settings)
    yield f"created {_format_time(record.created_ms)}"
    for player in record.players:
        yield f"player {player.seat} {_format_player(player)}"
    if record.deal_commitment:
        yield f"commitment {record.deal_commitment.hex()}"
    seeds = ((0, record.deal_seed), *((player.seat, player.deal_seed) for player in record.players))
    yield from (f"seed {seat} {seed.hex()}" for seat, seed in seeds if seed)
    rounds, ended, move_text = record.rounds, 0, move_text_of(record.ruleset)
    for place, move in enumerate(record.moves):
        if move.kind is MoveKind.DEAL and place:
            yield from map(_format_score, rounds[ended : ended + 1])
            ended += 1
        yield _format_move(move, record.created_ms, move_text)
    yield from map(_format_score, rounds[ended:])
    if record.winners:
        yield f"winners {' '.join(map(str, record.winners))}"


def _option_lines(ruleset: Ruleset, settings: RoomSettings) -> Iterator[str]:
    yield f"preset {ruleset.preset.name}"
    presets = presets_of(ruleset)
    for name, value in presets.stated(ruleset, settings).items():
        other = presets.OTHER_OPTIONS.get(name)
        yield f"option {name} {other.formatted(value) if other else text_of(value)}"


def _format_player(player: RecordedPlayer) -> str:
    """Returns the kind and the name of a player: `hard Bot 1`."""
    kind = player.bot.name.lower() if player.bot else _PROGRAM if player.is_program else _PERSON
    return f"{kind} {player.name}"


def _format_time(time_ms: int) -> str:
    """Returns milliseconds as seconds: `12.345`."""
    seconds, rest = divmod(time_ms, 1000)
    return f"{seconds}.{rest:03}"


def _format_score(score: RoundScore) -> str:
    return f"end {score.end.name} {' '.join(f'{seat}:{points}' for seat, points in score.points)}"


def _format_move(move: Move, created_ms: int, move_text: MoveText) -> str:
    words = _format_player(move.player) if move.player else move_text.format(move)
    seconds = _format_time(move.time_ms - created_ms)
    verb = f"{_BOT} {_VERBS[move.kind]}" if move.by_bot else _VERBS[move.kind]
    return f"{move.revision} {seconds} {move.seat} {verb}{' ' if words else ''}{words}"


# Parsing


def parse_record(text: str) -> GameRecord:
    """Parses the text of a record. Raises RecordTextError."""
    steps = parse_in_steps(text)
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            record: GameRecord = stop.value
            return record


def parse_in_steps(text: str) -> Generator[None, None, GameRecord]:
    """Parses the text of a record, and yields after each line. Raises RecordTextError."""
    reader, number = _Reader(), 0
    for number, line in enumerate(text.splitlines(), 1):
        try:
            reader.read(line)
        except NotationError as error:
            raise RecordTextError(str(error), number, error.column) from None
        yield
    return reader.record(number)


_ORDER: Final = (
    "",
    "rummikub-record",
    "preset",
    "option",
    "created",
    "player",
    "commitment",
    "seed",
    "move",
    "end",
    "winners",
)
"""The first words of lines in the order of a record; moves and ends alternate."""
_ONCE: Final = {"rummikub-record", "preset", "created", "commitment", "winners"}


class _Reader:
    """Collects the parts of a record from its lines."""

    def __init__(self) -> None:
        self._last = ""
        """The first word of the last line; `move` for a move."""
        self._preset, self._presets = DEFAULT_RULESET.preset.name, presets_of(DEFAULT_RULESET)
        self._options: dict[str, object] = {}
        self._ruleset: Ruleset = DEFAULT_RULESET
        self._settings = DEFAULT_SETTINGS
        self._move_text = move_text_of(DEFAULT_RULESET)
        self._created_ms: int | None = None
        self._players: list[RecordedPlayer] = []
        self._moves: list[Move] = []
        self._deals = 0
        self._rounds: list[RoundScore] = []
        self._winners: tuple[int, ...] = ()
        self._commitment = b""
        self._seeds: dict[int, bytes] = {}

    def record(self, lines: int) -> GameRecord:
        """Returns the record after its last line, which has the number `lines`. Raises RecordTextError."""
        if not self._last:
            raise RecordTextError(f"the text is empty: expected {TITLE!r}", 1, 1)
        if self._created_ms is None:
            raise RecordTextError("the record ends without its time: expected created", lines, 1)
        players = tuple(replace(one, deal_seed=self._seeds.get(one.seat, b"")) for one in self._players)
        moves, rounds = tuple(self._moves), tuple(self._rounds)
        return GameRecord(
            self._ruleset,
            self._settings,
            self._created_ms,
            players,
            moves,
            rounds,
            self._winners,
            self._commitment,
            self._seeds.get(0, b""),
        )

    def read(self, text: str) -> None:
        """Reads a line. Raises NotationError."""
        if len(text) > LINE_MAX:
            raise NotationError(f"the line has {len(text)} characters: expected at most {LINE_MAX}", LINE_MAX + 1)
        line = Piece(text).strip()
        words = line.words()
        if not words or line.text.startswith("#"):
            return
        word = "move" if words[0].text[0].isdecimal() else words[0].text
        self._check_place(line, words[0], word)
        self._last = word
        self._read(word, line, words)

    def _check_place(self, line: Piece, first: Piece, word: str) -> None:
        """Raises NotationError unless a line that begins with a word may follow the lines before it."""
        if not self._last and line.text != TITLE:
            raise line.error(f"is not the title of a record: expected {TITLE!r}")
        if word not in _ORDER[1:]:
            raise first.error(f"begins no line of a record: expected a revision or one of {', '.join(_ORDER[2:])}")
        place, last = _ORDER.index(word), _ORDER.index(self._last)
        is_next_round = (self._last, word) == ("end", "move")
        if not is_next_round and (place < last or (place == last and word in _ONCE)):
            raise first.error(f"does not follow {self._last}")
        if place > _ORDER.index("created") and self._created_ms is None:
            raise first.error("comes before the record's time: expected created")

    def _read(self, word: str, line: Piece, words: tuple[Piece, ...]) -> None:
        match word:
            case "preset":
                self._preset, self._presets = _preset(line, words)
            case "option":
                self._read_option(line, words)
            case "created":
                _check_count(line, words, 2, "created SECONDS")
                self._ruleset, self._settings = self._stated()
                self._move_text = move_text_of(self._ruleset)
                self._created_ms = _time(words[1], _CREATED)
            case "player":
                self._players.append(_player(line, words))
            case "commitment":
                _check_count(line, words, 2, "commitment HEX")
                self._commitment = _bytes(words[1], SEED_BYTES, SEED_BYTES)
            case "seed":
                self._read_seed(line, words)
            case "move":
                self._read_move(line, words)
            case "end":
                self._rounds.append(_score(line, words))
            case "winners":
                self._winners = _winners(line, words)
            case _:  # the title
                pass

    def _read_option(self, line: Piece, words: tuple[Piece, ...]) -> None:
        _check_count(line, words, 3, "option NAME VALUE")
        name, value = words[1:]
        row = self._presets.GAME_OPTIONS.get(name.text) or self._presets.OTHER_OPTIONS.get(name.text)
        if row is None:
            raise name.error("is not an option")
        if name.text in self._options:
            raise name.error("is given twice")
        try:
            self._options[name.text] = row.parsed(value.text)
        except ValueError:
            raise value.error("is not a value of this option") from None

    def _stated(self) -> tuple[Ruleset, RoomSettings]:
        """Returns the ruleset and the settings of the lines before `created`."""
        preset = self._presets.preset_named(self._preset)
        ruleset, settings = self._presets.chosen(preset, self._options)
        for problem in self._presets.problems_of(ruleset, settings):
            names = " and ".join(problem.options)
            raise NotationError(f"the options {names} have no such value together ({problem.value})")
        return ruleset, settings

    def _read_seed(self, line: Piece, words: tuple[Piece, ...]) -> None:
        _check_count(line, words, 3, "seed SEAT HEX, with seat 0 for the server")
        seat = 0 if words[1].text == "0" else parse_seat(words[1])
        if seat in self._seeds or (seat and all(seat != player.seat for player in self._players)):
            raise words[1].error("is not a seat of the record, or has a seed already")
        self._seeds[seat] = _bytes(words[2], 1 if seat else SEED_BYTES, PLAYER_SEED_MAX if seat else SEED_BYTES)

    def _read_move(self, line: Piece, words: tuple[Piece, ...]) -> None:
        if len(words) < 4:
            raise line.error("is not a move: expected REVISION SECONDS SEAT VERB")
        revision, since_ms = _revision(words[0]), _time(words[1], _SINCE)
        seat, verb = 0 if words[2].text == "0" else parse_seat(words[2]), _verb(words[3:])
        kind, by_bot = _KINDS[verb.text], verb is not words[3]
        self._deals += kind is MoveKind.DEAL
        move = Move(revision, (self._created_ms or 0) + since_ms, kind, seat, by_bot=by_bot)
        rest = line.after(verb)
        if kind in _WITHOUT_WORDS and rest.text:
            raise rest.error(f"follows {_VERBS[kind]}: expected nothing")
        if kind is MoveKind.TAKE_OVER:
            self._moves.append(replace(move, player=_kind_and_name(rest, seat)))
        else:
            self._moves.append(self._move_text.parse(move, rest, self._deals))


def _preset(line: Piece, words: tuple[Piece, ...]) -> tuple[str, Presets]:
    """Returns the name of a preset, and the presets of its family."""
    _check_count(line, words, 2, "preset NAME")
    presets = presets_with(words[1].text)
    if presets is None:
        raise words[1].error("is not a preset")
    return words[1].text, presets


def _time(word: Piece, form: re.Pattern[str]) -> int:
    """Returns seconds as milliseconds."""
    if not form.fullmatch(word.text):
        raise word.error("is not a time: expected seconds like 12.345")
    return int(word.text.replace(".", ""))


def _player(line: Piece, words: tuple[Piece, ...]) -> RecordedPlayer:
    if len(words) < 3:
        raise line.error(f"is not a player: expected player SEAT {_KIND_AND_NAME}")
    return _kind_and_name(line.after(words[1]), parse_seat(words[1]))


def _kind_and_name(text: Piece, seat: int) -> RecordedPlayer:
    """Returns the player of a seat, given the kind and the name."""
    words = text.words()
    if len(words) < 2:
        raise text.error(f"is not a player: expected {_KIND_AND_NAME}")
    level, name = words[0], text.after(words[0])
    if level.text not in _LEVELS:
        raise level.error(f"is not a player's kind: expected {' or '.join(_LEVELS)}")
    if len(name.text) > NAME_MAX or not name.text.translate(_JOINERS).isprintable():
        raise name.error(f"is not a name: expected at most {NAME_MAX} printable characters")
    return RecordedPlayer(seat, name.text, _LEVELS[level.text], level.text == _PROGRAM)


def _bytes(word: Piece, least: int, most: int) -> bytes:
    """Returns the bytes of hexadecimal digits."""
    if not re.fullmatch("([0-9a-f]{2})+", word.text) or not least <= len(word.text) // 2 <= most:
        raise word.error(f"is not a seed: expected {least} to {most} bytes as lower-case hexadecimal digits")
    return bytes.fromhex(word.text)


def _verb(words: tuple[Piece, ...]) -> Piece:
    """Returns the verb of a move from the words after its seat."""
    verb = words[1] if words[0].text == _BOT and len(words) > 1 else words[0]
    if verb.text not in _KINDS:
        raise verb.error(f"is not a move: expected one of {', '.join(_KINDS)}")
    return verb


def _revision(word: Piece) -> int:
    if not re.fullmatch("[1-9][0-9]{0,8}", word.text):
        raise word.error("is not a revision: expected a number from 1 on")
    return int(word.text)


def _score(line: Piece, words: tuple[Piece, ...]) -> RoundScore:
    if len(words) < 2 or words[1].text not in RoundEnd.__members__:
        raise line.error(f"is not a round's end: expected one of {', '.join(RoundEnd.__members__)}, and points")
    return RoundScore(RoundEnd[words[1].text], tuple(map(_points, words[2:])))


def _points(word: Piece) -> tuple[int, int]:
    """Returns a seat and its points."""
    match = re.fullmatch("([1-9]):(-?[0-9]{1,9})", word.text)
    if not match:
        raise word.error("is not a seat's points: expected SEAT:POINTS")
    return int(match[1]), int(match[2])


def _winners(line: Piece, words: tuple[Piece, ...]) -> tuple[int, ...]:
    if len(words) < 2:
        raise line.error("names nobody: expected the winners' seats")
    return tuple(map(parse_seat, words[1:]))


def _check_count(line: Piece, words: tuple[Piece, ...], count: int, form: str) -> None:
    """Raises NotationError unless a line has as many words as its form."""
    if len(words) != count:
        raise line.error(f"has {len(words)} words: expected {form}")
