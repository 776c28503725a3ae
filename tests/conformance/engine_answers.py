"""The engine's answers to the questions of the conformance cases, in the terms of the cases."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from enum import Enum
from typing import TypeVar, get_args

from engine.actions import (
    Action,
    AnnounceRematch,
    Join,
    StartDueRound,
    TimeOut,
)
from engine.deal import Shuffle
from engine.discard import game as discard
from engine.discard.actions import DiscardTile, FinishFoot, FinishHand, LayTiles, PassTurn
from engine.discard.events import HandFinished, HandsDealt, RackFinished
from engine.discard.finishing import HandToJudge, JudgedHand, judge_hand
from engine.discard.laying import TurnAtTable, Verdict, judge_foot, judge_turn
from engine.discard.melds import okey_of
from engine.discard.named_finish import JudgedNamedHand, judge_named_finish
from engine.discard.round import DiscardRound, HasLaid, Pile, ToDiscard, ToTake
from engine.discard.ruleset import Ruleset as DiscardRuleset
from engine.discard.table import Opening
from engine.discard.table import Table as DiscardTable
from engine.events import Event
from engine.family import presets_of, presets_with
from engine.game import (
    Aborted,
    Finished,
    Game,
    Lobby,
    Playing,
    RoundEnd,
    RoundOver,
)
from engine.melding import game as melding
from engine.melding.actions import ClaimError, DrawTile, Knock, LayOnRiver, Pass, PlayTiles
from engine.melding.deal import turn_order
from engine.melding.drafts import Draft
from engine.melding.events import RoundStarted
from engine.melding.game import seen_round
from engine.melding.grid.cells import Cell, Grid, Placement
from engine.melding.grid.play import GridPlay
from engine.melding.grid.rules import judge_grid, read_grid
from engine.melding.melds import Meld, MeldKind, ProposedMeld, read_meld
from engine.melding.notation import format_table
from engine.melding.play import Play
from engine.melding.round import Choosing, Drawing, Drawn, Open
from engine.melding.round import MeldingRound as Round
from engine.melding.ruleset import Ruleset
from engine.melding.scoring import Standing, score_round
from engine.melding.table import ProposedTable, Table, empty_table
from engine.melding.turns import arrange
from engine.notation import format_tile, parse_tile
from engine.room_settings import DEFAULT_SETTINGS, SETTINGS, RoomSettings
from engine.seats import Player, Rack, Turn, from_seat
from engine.sight import is_open_to_spectators, see
from engine.tiles import COLORS, FALSE_JOKER, JOKER, JOKERS, Tile, in_order, naturals, without
from engine.timers import due_ms
from engine.turns import Applied, apply, create
from engine.unions import Round as AnyRound
from engine.unions import RoundStart
from engine.unions import Ruleset as AnyRuleset
from engine.violations import Refused
from support.conformance_cases import (
    Act,
    Creation,
    DiscardPositionText,
    DiscardTurnQuestion,
    Faces,
    GridText,
    HandQuestion,
    LittleGame,
    MeldText,
    OpeningText,
    Options,
    PlacementQuestion,
    Question,
    RoundQuestion,
    TurnQuestion,
    openings_text,
)
from support.conformance_cases import table_text as text_of
from support.plays import judged
from support.rooms import Room

START_MS = 1_000_000
STATES = {Lobby: "LOBBY", Playing: "PLAYING", RoundOver: "ROUND_OVER", Finished: "FINISHED", Aborted: "ABORTED"}
STEPS = {
    Open: "OPEN",
    Choosing: "CHOOSING",
    Drawn: "DRAWN",
    Drawing: "DRAWING",
    ToTake: "OPEN",
    ToDiscard: "DISCARDING",
    HasLaid: "DISCARDING",
}
TILES = {format_tile(tile): tile for tile in (*naturals(len(COLORS)), *JOKERS, FALSE_JOKER)}

Found = TypeVar("Found")


def ruleset_of(options: Options) -> Ruleset:
    return room_of(options).ruleset


def room_of(options: Options) -> Room:
    ruleset, settings = game_options(options)
    assert isinstance(ruleset, Ruleset)
    return Room(ruleset, settings)


def game_options(options: Options) -> tuple[AnyRuleset, RoomSettings]:
    """Returns ruleset and settings of the family that has the preset."""
    name = str(options.get("preset", "SABRA"))
    presets = presets_with(name)
    assert presets
    preset = presets.preset_named(name)
    rules = presets.PRESETS[preset]
    values = {option: _value_of(option, value, rules) for option, value in options.items() if option != "preset"}
    return presets.chosen(preset, values)


def _value_of(option: str, value: str | int, rules: AnyRuleset) -> Enum | int:
    default = getattr(DEFAULT_SETTINGS if option in SETTINGS else rules, option)
    return type(default)[str(value)] if isinstance(default, Enum) else int(value) if value is not True else True


def tiles_of(faces: Faces) -> tuple[Tile, ...]:
    return tuple(TILES[face] for face in faces)


def faces_of(tiles: Iterable[Tile]) -> Faces:
    return tuple(map(format_tile, tiles))


def proposed(meld: MeldText) -> ProposedMeld:
    kind = MeldKind[meld.kind.upper()] if meld.kind else None
    return ProposedMeld(tiles_of(meld.tiles), kind, tiles_of(meld.declared))


def table_of(melds: Iterable[MeldText], ruleset: Ruleset) -> tuple[Meld, ...]:
    readings = tuple(read_meld(proposed(meld), ruleset) for meld in melds)
    assert all(isinstance(reading, Meld) for reading in readings), "the case's table holds what is no meld"
    return tuple(reading for reading in readings if isinstance(reading, Meld))


def answer(question: Question, options: Options) -> "Faces | GameSeen | dict[str, object]":
    """Returns the answer to a contrast's question."""
    ruleset, settings = game_options(options)
    match question:
        case Creation():
            return creation_problems(options)
        case LittleGame():
            return play(question, ruleset, settings)
        case HandQuestion():
            assert isinstance(ruleset, DiscardRuleset)
            return tuple(one.reason.name for one in judged_hand(question, ruleset).violations)
        case DiscardTurnQuestion():
            assert isinstance(ruleset, DiscardRuleset)
            return tuple(one.reason.name for one in verdict_on(question, ruleset).violations)
        case RoundQuestion():
            assert isinstance(ruleset, Ruleset)
            return _score(question, ruleset)
        case _:
            assert isinstance(ruleset, Ruleset)
            return reasons(question, ruleset)


def reasons(question: MeldText | TurnQuestion | PlacementQuestion, ruleset: Ruleset) -> Faces:
    """Returns the reasons why a play is illegal."""
    match question:
        case MeldText():
            reading = read_meld(proposed(question), ruleset)
            return () if isinstance(reading, Meld) else tuple(reason.name for reason in reading.reasons)
        case TurnQuestion():
            return tuple(violation.reason.name for violation in judged(play_of(question, ruleset)).violations)
        case PlacementQuestion():
            return tuple(one.reason.name for one in judge_grid(placement_of(question, ruleset)).violations)


def play_of(question: TurnQuestion, ruleset: Ruleset) -> Play:
    """Returns a turn as a play that the rules judge."""
    return Play(
        table_of(question.table_before, ruleset),
        tuple(map(proposed, question.table_after)),
        in_order(tiles_of(question.rack)),
        question.has_melded,
        ruleset,
        river=tiles_of(question.river),
        river_index=question.river_index,
        drawn=TILES[question.tile_drawn] if question.tile_drawn else None,
        calls_rummikub=question.calls_rummikub,
    )


def placement_of(question: PlacementQuestion, ruleset: Ruleset) -> GridPlay:
    """Returns a turn of the cross layout as a play that its rules judge."""
    before = read_grid(grid_of(question.table_before), ruleset)
    assert before, "the case's table is not legal"
    return GridPlay(
        before,
        grid_of(question.table_after),
        in_order(tiles_of(question.rack)),
        question.has_melded,
        ruleset,
        drawn=TILES[question.tile_drawn] if question.tile_drawn else None,
        calls_rummikub=question.calls_rummikub,
    )


def judged_hand(question: HandQuestion, ruleset: DiscardRuleset) -> JudgedHand | JudgedNamedHand:
    """Returns the judgment of a hand; without an indicator, of a named one."""
    tiles, hand = in_order(tiles_of(question.tiles)), tuple(map(tiles_of, question.hand))
    discard = TILES[question.discard] if question.discard else None
    if question.indicator is None:
        return judge_named_finish(tiles, discard, hand, ruleset.hands)
    return judge_hand(HandToJudge(tiles, TILES[question.indicator], discard, hand, one_high=ruleset.run_one_high))


def verdict_on(question: DiscardTurnQuestion, ruleset: DiscardRuleset) -> Verdict:
    """Returns the judgment of a turn of a game of discards with a table."""
    turn = TurnAtTable(
        question.seat,
        okey_of(TILES[question.indicator]) if question.indicator else JOKER,
        discard_table_of(question.table_before, question.openings),
        in_order(tiles_of(question.rack)),
        TILES[question.owed_tile] if question.owed_tile else None,
        question.tiles_laid,
    )
    after = tuple(map(tiles_of, question.table_after)) or None
    discard = TILES[question.discard] if question.discard else None
    if question.is_foot and after and discard:
        return judge_foot(turn, after, discard, ruleset)
    return judge_turn(turn, after, discard, ruleset)


def discard_table_of(melds: Iterable[Faces], openings: Iterable[OpeningText]) -> DiscardTable:
    """Returns the table of a game of discards."""
    return DiscardTable(
        tuple(map(tiles_of, melds)), tuple(Opening(one.seat, one.is_pairs, one.amount) for one in openings)
    )


def opening_text(opening: Opening) -> OpeningText:
    """Returns an opening in the terms of the cases."""
    return OpeningText(opening.seat, opening.amount, opening.is_pairs)


def grid_of(text: GridText) -> Grid:
    return Grid(tuple(Placement(TILES[face], Cell(x, y)) for face, x, y in text.placements))


def any_proposed(table: tuple[MeldText, ...] | GridText) -> ProposedTable:
    """Returns a table of either layout as a player sends it."""
    return grid_of(table) if isinstance(table, GridText) else tuple(map(proposed, table))


def _score(question: RoundQuestion, ruleset: Ruleset) -> dict[str, object]:
    standings = tuple(
        Standing(
            seat,
            tiles_of(rack),
            has_melded=seat not in question.never_melded,
            declined=seat in question.declined_to_meld,
        )
        for seat, rack in enumerate(question.racks, 1)
    )
    end = RoundEnd.WENT_OUT if () in question.racks else RoundEnd.BLOCKED
    result = score_round(1, end, standings, ruleset)
    return {"winners": list(result.winners), "points": [seat.points for seat in result.seats]}


def creation_problems(options: Options) -> Faces:
    """Returns the problems that prevent creating a game, as texts."""
    chosen = game_options(options)
    found = presets_of(chosen[0]).problems_of(*chosen)
    return tuple(" ".join((problem.reason.name, *problem.options)) for problem in found)


# Games


@dataclass(frozen=True)
class GameSeen:
    """A finished short game: the refusal or the result of its last action."""

    game: Game
    now_ms: int
    dealt: RoundStart | None
    refused: Faces = ()
    violations: Faces = ()
    draft: Draft | None = None

    def see(self, key: str) -> object:
        """Returns the observation for a key of an outcome."""
        return _SEEN[key](self)

    @property
    def any_round(self) -> AnyRound:
        assert self.game.round
        return self.game.round

    @property
    def round(self) -> Round:
        return melding.round_of(self.game)

    @property
    def discards(self) -> DiscardRound:
        return discard.round_of(self.game)


def _of_last_round(seen: GameSeen, default: object, read: Callable[[GameSeen], object]) -> object:
    return read(seen) if seen.game.results else default


def _shown_play(seen: GameSeen) -> str | None:
    shown = seen.round.shown_play
    return table_text(shown.table) if shown else None


def _claim_seats(seen: GameSeen) -> list[int]:
    shown = seen.round.shown_play
    return list(shown.claimed) if shown else []


def _seconds_left(seen: GameSeen) -> float | None:
    deadline = seen.any_round.turn.deadline_ms
    return None if deadline is None else (deadline - seen.now_ms) / 1000


def _discards(seen: GameSeen) -> dict[str, str]:
    return {str(pile.seat): " ".join(faces_of(pile.tiles[-1:])) for pile in seen.discards.piles}


def _finished_pairs(seen: GameSeen) -> bool | None:
    return seen.discards.finish.is_pairs if seen.discards.finish else None


def _hand_name(seen: GameSeen) -> str:
    return seen.discards.finish.name if isinstance(seen.discards.finish, HandFinished) else ""


def _is_foot(seen: GameSeen) -> bool:
    return isinstance(seen.discards.finish, RackFinished) and seen.discards.finish.is_foot


def _trump(seen: GameSeen) -> str:
    return format_tile(seen.discards.trump_to_take) if seen.discards.trump_to_take else ""


def _laid(seen: GameSeen) -> str:
    table = seen.discards.table
    return text_of(tuple(MeldText(faces_of(part)) for part in table.melds)) if table else "."


def _openings(seen: GameSeen) -> str:
    table = seen.discards.table
    return openings_text(map(opening_text, table.openings if table else ()))


def _absent(seen: GameSeen) -> str:
    return " ".join(f"{player.seat}:{player.stand_in.name}" for player in seen.game.players if player.stand_in)


def _open_draft(seen: GameSeen) -> str | None:
    view = seen_round(see(seen.game, None, seen.draft))
    return table_text(view.draft.table) if view and view.draft else None


def _next_round_seconds(seen: GameSeen) -> float | None:
    due = None if isinstance(seen.game.phase, Playing) else due_ms(seen.game)
    return None if due is None else (due - seen.now_ms) / 1000


def table_text(table: Table | ProposedTable) -> str:
    """Formats a table without kinds."""
    if isinstance(table, Grid):
        return format_table(table)
    return text_of(tuple(MeldText(faces_of(meld.tiles)) for meld in table))


_SEEN: dict[str, Callable[[GameSeen], object]] = {
    "refused": lambda seen: list(seen.refused),
    "violations": lambda seen: list(seen.violations),
    "state": lambda seen: STATES[type(seen.game.phase)],
    "host_seat": lambda seen: seen.game.host_seat,
    "ready_seats": lambda seen: [player.seat for player in seen.game.players if player.is_ready],
    "abort_seats": lambda seen: [player.seat for player in seen.game.players if player.wants_abort],
    "has_rematch": lambda seen: bool(seen.game.rematch_game_id),
    "turn_seat": lambda seen: seen.any_round.turn.seat if isinstance(seen.game.phase, Playing) else None,
    "turn_order": lambda seen: list(seen.any_round.order),
    "table": lambda seen: table_text(seen.round.table),
    "racks": lambda seen: {str(rack.seat): " ".join(faces_of(rack.tiles)) for rack in seen.any_round.racks},
    "pool_count": lambda seen: len(seen.any_round.pool),
    "river": lambda seen: " ".join(faces_of(seen.round.river)),
    "step": lambda seen: STEPS[type(seen.any_round.step)],
    "okey": lambda seen: format_tile(seen.discards.okey),
    "discards": _discards,
    "discarded_seats": lambda seen: list(seen.discards.discarded),
    "shown_by_seat": lambda seen: seen.discards.shown_by,
    "finished_pairs": _finished_pairs,
    "hand_name": _hand_name,
    "is_foot": _is_foot,
    "trump": _trump,
    "laid": _laid,
    "openings": _openings,
    "penalties": lambda seen: " ".join(f"{one.seat}:{one.points}" for one in seen.discards.penalties),
    "passed_seats": lambda seen: list(seen.round.passed),
    "last_chance_seats": lambda seen: list(seen.round.last_chance or ()),
    "shown_play": _shown_play,
    "claim_seats": _claim_seats,
    "seconds_left": _seconds_left,
    "draws": lambda seen: " ".join(f"{draw.seat}:{format_tile(draw.tile)}" for draw in _dealt(seen).draws),
    "end": lambda seen: _of_last_round(seen, None, lambda seen: seen.game.results[-1].end.name),
    "round_winner_seats": lambda seen: _of_last_round(seen, [], lambda seen: list(seen.game.results[-1].winners)),
    "points": lambda seen: _of_last_round(seen, [], lambda seen: [seat.points for seat in seen.game.results[-1].seats]),
    "open_racks": lambda seen: _of_last_round(seen, {}, _open_racks),
    "open_pool": lambda seen: _of_last_round(seen, "", _open_pool),
    "totals": lambda seen: [player.total_points for player in seen.game.players],
    "winner_seats": lambda seen: list(seen.game.phase.winners) if isinstance(seen.game.phase, Finished) else [],
    "abandoned": lambda seen: isinstance(seen.game.phase, Finished) and seen.game.phase.abandoned,
    "absent": _absent,
    "time_left": lambda seen: [
        None if player.time_left_ms is None else player.time_left_ms / 1000 for player in seen.game.players
    ],
    "timeouts": lambda seen: [player.timeouts_in_a_row for player in seen.game.players],
    "next_round_seconds": _next_round_seconds,
    "open_draft": _open_draft,
    "is_open": lambda seen: is_open_to_spectators(seen.game),
}


def _open_racks(seen: GameSeen) -> dict[str, str]:
    racks = see(seen.game, None).results[-1].racks
    return {str(rack.seat): " ".join(faces_of(rack.tiles)) for rack in racks}


def _open_pool(seen: GameSeen) -> str:
    return " ".join(faces_of(see(seen.game, None).results[-1].pool))


def _dealt(seen: GameSeen) -> RoundStarted:
    assert isinstance(seen.dealt, RoundStarted)
    return seen.dealt


def play(question: LittleGame, ruleset: AnyRuleset, settings: RoomSettings) -> GameSeen:
    """Plays a short game."""
    seen = GameSeen(_first(question, ruleset, settings), START_MS, None)
    shuffles = iter(question.shuffles)
    draft: Draft | None = None
    for act in question.actions:
        assert not seen.refused, f"before {act}: refused for {seen.refused}"
        if act.do == "wait":
            seen = GameSeen(seen.game, seen.now_ms + act.seconds * 1000, seen.dealt)
            continue
        if act.do == "save_draft":
            saved = arrange(seen.game, act.seat, any_proposed(act.table), seen.now_ms)
            if isinstance(saved, Refused):
                seen = replace(seen, refused=() if act.attempt else _reasons(saved))
            else:
                draft = saved
            continue
        now_ms = _due_ms(seen.game) + 1 if act.do in {"time_out", "pause_end"} else seen.now_ms
        result = apply(seen.game, _action(act, seen.game, _of_the_turn(draft, seen.game), shuffles), now_ms)
        if isinstance(result, Applied):
            violations = tuple(violation.reason.name for violation in result.violations)
            seen = GameSeen(result.game, now_ms, _last_dealt(result.events) or seen.dealt, (), violations)
        elif not act.attempt:
            seen = GameSeen(seen.game, now_ms, seen.dealt, _reasons(result))
    return replace(seen, draft=draft)


def _reasons(refused: Refused) -> Faces:
    return tuple(violation.reason.name for violation in refused.violations)


def _last_dealt(events: tuple[Event, ...]) -> RoundStart | None:
    return next((event for event in events if isinstance(event, RoundStarted | HandsDealt)), None)


def _of_the_turn(draft: Draft | None, game: Game) -> Draft | None:
    return draft if draft and game.round and draft.turn_revision == game.round.turn.revision else None


def _due_ms(game: Game) -> int:
    at_ms = due_ms(game)
    assert at_ms is not None
    return at_ms


def _first(question: LittleGame, ruleset: AnyRuleset, settings: RoomSettings) -> Game:
    if question.position is None:
        game = create(ruleset, settings).game
        for seat in range(1, question.players + 1):
            joined = apply(game, Join(f"player {seat}", is_host=seat == 1), START_MS)
            assert isinstance(joined, Applied)
            game = joined.game
        return game
    round_ = round_of(question, ruleset, settings, START_MS)
    return Game(ruleset, settings, 1, players_of(round_, ruleset), Playing(round_))


def players_of(round_: AnyRound, ruleset: AnyRuleset) -> tuple[Player, ...]:
    """Returns the players of a round, with the points that they have before the first one."""
    return tuple(Player(rack.seat, f"player {rack.seat}", ruleset.points_at_start) for rack in round_.racks)


def round_of(question: LittleGame, ruleset: AnyRuleset, settings: RoomSettings, now_ms: int) -> AnyRound:
    """Returns the round of a game's position, at the beginning of a turn."""
    position = question.position
    assert position
    racks = tuple(Rack(rack.seat, in_order(tiles_of(rack.rack)), rack.has_melded) for rack in position.racks)
    limit = settings.turn_time_limit_seconds
    turn = Turn(position.turn_seat, now_ms + limit * 1000 if limit else None)
    if isinstance(position, DiscardPositionText):
        assert isinstance(ruleset, DiscardRuleset)
        held = next(len(rack.tiles) for rack in racks if rack.seat == turn.seat)
        return DiscardRound(
            number=1,
            order=from_seat(tuple(rack.seat for rack in racks)[::-1], 1),
            indicator=TILES[position.indicator] if position.indicator else None,
            racks=racks,
            pool=tiles_of(position.pool),
            piles=tuple(Pile(pile.seat, tiles_of(pile.rack)) for pile in position.discards),
            turn=turn,
            step=ToDiscard() if held > ruleset.hand_size else ToTake(),
            discarded=question.discarded,
            table=None if position.table is None else discard_table_of(position.table, position.openings),
            trump=TILES[position.trump] if position.trump else None,
        )
    assert isinstance(ruleset, Ruleset)
    return Round(
        number=1,
        order=turn_order(tuple(rack.seat for rack in racks), 1, ruleset.turn_direction),
        table=table_of(position.table, ruleset) or empty_table(ruleset),
        racks=racks,
        pool=tiles_of(position.pool),
        turn=turn,
        river=tiles_of(question.river),
    )


def _shuffle(game: Game, shuffles: Iterator[Faces]) -> Shuffle:
    ruleset = game.ruleset
    tiles = ruleset.tiles(len(game.active_seats))
    start_draw, deal = (tiles_of(next(shuffles, ())) for _ in range(2))
    return Shuffle((*start_draw, *without(tiles, start_draw)), (*deal, *without(tiles, deal)))


def _action(act: Act, game: Game, draft: Draft | None, shuffles: Iterator[Faces]) -> Action:
    return _of_turn(act, draft) or _of_discards(act) or _of_game(act, game, shuffles)


def _of_turn(act: Act, draft: Draft | None) -> Action | None:
    match act.do:
        case "play":
            return PlayTiles(
                act.seat,
                any_proposed(act.table),
                act.river_index,
                calls_rummikub=act.calls_rummikub,
                knocks=act.knocks,
            )
        case "draw":
            return DrawTile(act.seat)
        case "pass":
            return Pass(act.seat)
        case "knock":
            return Knock(act.seat)
        case "lay_on_river":
            return LayOnRiver(act.seat, parse_tile(act.tile))
        case "time_out":
            return TimeOut(draft.table if draft else None)
        case _:
            return None


def _of_discards(act: Act) -> Action | None:
    match act.do:
        case "discard":
            return DiscardTile(act.seat, parse_tile(act.tile))
        case "finish":
            return FinishHand(act.seat, parse_tile(act.tile), tuple(map(tiles_of, act.hand)))
        case "foot":
            assert not isinstance(act.table, GridText)
            return FinishFoot(act.seat, parse_tile(act.tile), tuple(tiles_of(meld.tiles) for meld in act.table))
        case "pass_empty_pool":
            return PassTurn(act.seat)
        case "lay":
            assert not isinstance(act.table, GridText)
            return LayTiles(act.seat, tuple(tiles_of(meld.tiles) for meld in act.table))
        case _:
            return None


ACTIONS: Mapping[str, type] = {kind.__name__: kind for kind in get_args(Action)}


def named(do: str, things: Mapping[str, Found]) -> Found:
    """Returns the action or RPC whose name begins with the words of a case: SetReady for `set_ready`."""
    start = "".join(map(str.capitalize, do.split("_")))
    [found] = [thing for name, thing in things.items() if name.startswith(start)]
    return found


def _of_game(act: Act, game: Game, shuffles: Iterator[Faces]) -> Action:
    match act.do:
        case "join":
            return Join(act.name, seat=act.seat, is_host=not game.players)
        case "create_rematch":
            return AnnounceRematch("0" * 32)
        case "pause_end":
            return StartDueRound(_shuffle(game, shuffles))
        case "claim_error":
            shown = melding.round_of(game).shown_play if game.round else None
            return ClaimError(act.seat, shown.revision if shown else game.revision, act.agrees)
        case _:
            kind = named(act.do, ACTIONS)
            values = {field.name: getattr(act, field.name) for field in fields(kind) if hasattr(act, field.name)}
            if any(field.name == "shuffle" for field in fields(kind)):
                values["shuffle"] = _shuffle(game, shuffles)
            made: Action = kind(**values)
            return made
