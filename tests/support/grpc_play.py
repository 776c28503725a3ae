"""Random players over gRPC: they play whole games on servers that may fail, and retry every unanswered call."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import grpc
import grpc.aio

from engine.discard.hands import standing
from engine.melding.analysis import Situation, options_needing_analysis
from engine.melding.melds import Meld, MeldKind, ProposedMeld, read_meld
from engine.melding.ruleset import Ruleset, TurnInvalidSubmission
from engine.tiles import Tile, without
from rummikub.v1 import game_pb2, meld_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import turn_service_pb2 as ts
from service.codec.rulesets import ruleset
from support.random_play import random_table, solved
from tools.games import Client, GameAtHand, as_tiles, changes_of, new_id

T = TypeVar("T")

KINDS: dict[int, MeldKind] = {meld_pb2.MELD_KIND_GROUP: MeldKind.GROUP, meld_pb2.MELD_KIND_RUN: MeldKind.RUN}
NUMBERS = {MeldKind.GROUP: meld_pb2.MELD_KIND_GROUP, MeldKind.RUN: meld_pb2.MELD_KIND_RUN}
ATTEMPTS = 400
OFTEN = 0.1
PAUSE_SECONDS = 0.05


def table_of(game: game_pb2.Game, rules: Ruleset) -> tuple[Meld, ...]:
    """Returns the table of a game message as the engine reads it."""
    melds = []
    for message in game.table.melds:
        faces = [joker.faces[0] for joker in message.jokers if len(joker.faces) == 1]
        declared = tuple(map(Tile, faces)) if len(faces) == len(message.jokers) else ()
        reading = read_meld(ProposedMeld(tuple(map(Tile, message.tiles)), KINDS[message.kind], declared), rules)
        assert isinstance(reading, Meld), f"{message} on the table is no meld"
        melds.append(reading)
    return tuple(melds)


def meld_message(meld: ProposedMeld) -> meld_pb2.Meld:
    """Returns a meld as a message."""
    kind = NUMBERS[meld.kind] if meld.kind else meld_pb2.MELD_KIND_UNSPECIFIED
    return meld_pb2.Meld(tiles=as_tiles(meld.tiles), kind=kind, declared_faces=as_tiles(meld.declared))


def random_turn(game: game_pb2.Game, rng: random.Random) -> ts.PlayTurnRequest:
    """Returns a legal turn of the seat that sees this game; sometimes an illegal play, if the rules allow penalties."""
    request = ts.PlayTurnRequest(game_id=game.game_id, etag=game.etag, request_id=new_id())
    if game.ruleset.HasField("discard"):
        request.MergeFrom(_turn_of_discards(game, rng))
        return request
    rules = ruleset(game.ruleset.melding)
    if game.turn.step == game_pb2.TURN_STEP_CHOOSING:
        request.lay_on_river.tile = rng.choice(game.turn.tiles_drawn)
        return request
    if rules.turn_invalid_submission is not TurnInvalidSubmission.REJECT and rng.random() < OFTEN:
        request.play.SetInParent()
        return request
    table = _random_play(game, rules, rng)
    if table is not None:
        request.play.table.melds.extend(map(meld_message, table))
        request.play.calls_rummikub = True
    elif game.pool_count and game.turn.step in {game_pb2.TURN_STEP_OPEN, game_pb2.TURN_STEP_DRAWING}:
        request.draw.SetInParent()
    else:
        request.pass_turn.SetInParent()
    return request


def _turn_of_discards(game: game_pb2.Game, rng: random.Random) -> ts.PlayTurnRequest:
    """Returns a turn of the seat that sees a game of discards: in Okey it finishes as soon as it can."""
    if not game.discard_board.indicator:
        return _turn_with_jokers(game, rng)
    if game.turn.step == game_pb2.TURN_STEP_OPEN:
        order = list(game.turn_order)
        before = order[order.index(game.seat) - 1]
        newest = next(pile.newest for pile in game.discard_board.piles if pile.seat == before)
        if newest and rng.random() < 0.3:
            return ts.PlayTurnRequest(take_discard=ts.TakeDiscard())
        return ts.PlayTurnRequest(take_from_pool=ts.TakeFromPool())
    lacks = standing(tuple(map(Tile, game.rack)), Tile(game.discard_board.okey), one_high=True)
    [tile] = as_tiles([rng.choice(lacks.spare)])
    if lacks.missing == 0:
        return ts.PlayTurnRequest(finish=ts.FinishHand(tile=tile))
    return ts.PlayTurnRequest(discard=ts.DiscardTile(tile=tile))


def _turn_with_jokers(game: game_pb2.Game, rng: random.Random) -> ts.PlayTurnRequest:
    """Returns a turn in a game with jokers: a tile of the pool, then any discard; no tile is laid."""
    if game.turn.step == game_pb2.TURN_STEP_DISCARDING:
        return ts.PlayTurnRequest(discard=ts.DiscardTile(tile=rng.choice(game.rack)))
    if game.pool_count:
        return ts.PlayTurnRequest(take_from_pool=ts.TakeFromPool())
    return ts.PlayTurnRequest(pass_empty_pool=ts.PassEmptyPool())


def _random_play(game: game_pb2.Game, rules: Ruleset, rng: random.Random) -> tuple[ProposedMeld, ...] | None:
    """Returns a legal play of the seat that sees this game, without the tiles drawn in this turn, if it finds one.

    If the rules may require a play, the solver finds it.
    """
    melded = next(player.has_melded for player in game.players if player.seat == game.seat)
    rack = without(map(Tile, game.rack), map(Tile, game.turn.tiles_drawn))
    table = table_of(game, rules)
    played = random_table(table, rack, melded, rules, rng)
    if played is None and options_needing_analysis(rules):
        found = solved(Situation(table, rack, melded, rules))
        played = found.table if found else None
    return None if played is None else tuple(played)


@dataclass
class Fleet:
    """Servers on one store. A call goes to a random server, and is retried on any server until it is answered."""

    clients: Sequence[Client]
    rng: random.Random
    resent: int = 0
    turns: int = 0
    told: asyncio.Event = field(default_factory=asyncio.Event)

    def turn_taken(self) -> None:
        """Counts an acknowledged turn."""
        self.turns += 1
        self.told.set()

    async def has_taken(self, turns: int) -> None:
        """Waits until a number of turns has been acknowledged in all games together."""
        while self.turns < turns:
            self.told.clear()
            await self.told.wait()

    async def call(self, rpc: Callable[[Client], Awaitable[T]]) -> T:
        """Returns the answer to a call. Retries it while no server answers; the request id makes that safe."""
        for _ in range(ATTEMPTS):
            try:
                return await rpc(self.rng.choice(self.clients))
            except grpc.aio.AioRpcError as error:
                if error.code() is not grpc.StatusCode.UNAVAILABLE:
                    raise
                self.resent += 1
                await asyncio.sleep(PAUSE_SECONDS)  # a client's pause while a server restarts
        raise AssertionError("no server answered")


@dataclass
class Played:
    """A finished game, and the etag of every revision that a player has received."""

    game: GameAtHand
    final: game_pb2.Game
    etags: dict[int, str] = field(default_factory=dict)


async def play_game(fleet: Fleet, game: GameAtHand, rng: random.Random) -> Played:
    """Plays a started game to its end."""
    state = await _see(fleet, game, 0)
    etags = {state.revision: state.etag}
    while state.state == game_pb2.GAME_STATE_PLAYING:
        state = await _meanwhile(fleet, game, state, rng)
        etags[state.revision] = state.etag
        if state.state != game_pb2.GAME_STATE_PLAYING:
            break
        seat = state.turn.seat
        own = await _see(fleet, game, seat)
        assert own.revision == state.revision, "a turn was lost or doubled"
        request = random_turn(own, rng)
        answer = await fleet.call(_take(request, game, seat))
        assert answer.game.revision == own.revision + 1
        state = answer.game
        etags[state.revision] = state.etag
        fleet.turn_taken()
    return Played(game, state, etags)


async def _meanwhile(fleet: Fleet, game: GameAtHand, state: game_pb2.Game, rng: random.Random) -> game_pb2.Game:
    """Saves a draft now and then, and votes on an illegal play; returns the game."""
    if state.turn.HasField("shown_play") and not state.turn.shown_play.HasField("against_seat"):
        return await _vote(fleet, game, state, agrees=rng.random() > OFTEN)
    has_drafts = state.ruleset.HasField("melding") and state.turn.step != game_pb2.TURN_STEP_CHOOSING
    if not has_drafts or rng.random() > OFTEN:
        return state
    drafted = game_pb2.Draft(
        table=meld_pb2.Table(melds=[meld_pb2.Meld(tiles=meld.tiles[:2]) for meld in state.table.melds])
    )
    draft = ts.SaveDraftRequest(
        game_id=game.game_id,
        etag=state.etag,
        draft=drafted,
    )
    metadata = game.as_seat(state.turn.seat)
    await fleet.call(lambda client: client.turns.SaveDraft(draft, metadata=metadata))
    return state


async def _vote(fleet: Fleet, game: GameAtHand, state: game_pb2.Game, *, agrees: bool) -> game_pb2.Game:
    """Votes on the displayed illegal play; returns the game."""
    shown = state.turn.shown_play
    voter = min({player.seat for player in state.players} - {state.turn.seat, *shown.claim_seats})
    vote = ts.ClaimErrorRequest(game_id=game.game_id, play_revision=shown.revision, agrees=agrees, request_id=new_id())
    return (await fleet.call(lambda client: client.turns.ClaimError(vote, metadata=game.as_seat(voter)))).game


async def _see(fleet: Fleet, game: GameAtHand, seat: int) -> game_pb2.Game:
    request = gs.GetGameRequest(game_id=game.game_id)
    return (await fleet.call(lambda client: client.games.GetGame(request, metadata=game.as_seat(seat)))).game


def _take(
    request: ts.PlayTurnRequest, game: GameAtHand, seat: int
) -> Callable[[Client], Awaitable[ts.PlayTurnResponse]]:
    return lambda client: client.turns.PlayTurn(request, metadata=game.as_seat(seat))


async def history(client: Client, game: GameAtHand) -> list[game_pb2.GameChange]:
    """Returns all changes of a game, as a spectator sees them."""
    return await changes_of(client, game.game_id)


def lost_or_doubled(played: Played, changes: Sequence[game_pb2.GameChange]) -> list[int]:
    """Returns acknowledged revisions that the history lacks or has with another etag, and its gaps and repetitions."""
    stored = {change.revision: change.etag for change in changes}
    revisions = [change.revision for change in changes]
    gaps = [revision for place, revision in enumerate(revisions, 1) if place != revision]
    return gaps + [revision for revision, etag in played.etags.items() if stored.get(revision) != etag]
