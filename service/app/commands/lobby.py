"""The lobby: creating a game, joining and leaving it, bots."""

import itertools
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final

from engine.actions import Join, Leave, TakeOverSeat
from engine.fair_deal import commitment_to
from engine.game import Game, Lobby
from engine.melding.position import Position
from engine.replay import advance
from engine.room_settings import DEFAULT_SETTINGS, RoomSettings
from engine.seats import HOST, BotLevel, ReservedSeat
from engine.turns import Applied, apply, create
from engine.unions import Ruleset
from engine.violations import Reason, refused
from service.app.commands.command import (
    Basis,
    Command,
    Decision,
    GameCommand,
    applied_or_refused,
    valid_tokens,
)
from service.app.identity import Chance, invited_in, member_in, player_seat_in, token_in
from service.app.names import are_alike
from service.errors import (
    ActionRefused,
    AlreadySeated,
    JoinCodeRequired,
    JoinCodeUnknown,
    PlayerRefTaken,
    TicketOutOfScope,
    TicketRequired,
    WasKicked,
)
from service.model.record import PlayerRef, Record, SeatToken, Visibility
from service.runtime.join_tickets import Person

DIGEST_BYTES: Final = 32
BOT_NAMES: Final = ("Rosa", "Bruno", "Karla", "Oskar", "Ruth", "Bella", "Kasimir", "Olive")
"""The names of bots that get none, with the initials of the colors."""


@dataclass(frozen=True, slots=True)
class GamePlan:
    """A game to create: rules, settings and position without problems, its record.Listing, what only the operator sees.

    Attributes:
        reserved: The reserved seats, ascending; each has a reference in `player_refs`.
    """

    ruleset: Ruleset
    settings: RoomSettings = DEFAULT_SETTINGS
    visibility: Visibility = Visibility.UNLISTED
    labels: tuple[tuple[str, str], ...] = ()
    key: str = ""
    operator_labels: tuple[tuple[str, str], ...] = ()
    position: Position | None = None
    reserved: tuple[ReservedSeat, ...] = ()
    player_refs: tuple[PlayerRef, ...] = ()


@dataclass(frozen=True, slots=True)
class CreateGame(Command):
    """Creates a game; the answer has the host token."""

    plan: GamePlan

    def decide(self, chance: Chance, deal_commitment: bytes) -> Decision:
        """Returns the new game."""
        plan = self.plan
        seats = plan.position.seats if plan.position else ()
        created = create(plan.ruleset, plan.settings, plan.reserved, seats, deal_commitment)
        return self.with_new_token(Decision(created, (), viewer=HOST), HOST, chance)


@dataclass(frozen=True, slots=True)
class JoinOrCreateGame(Command):
    """Seats a player in an open public game like the plan, or creates one; the answer has the seat's token.

    Attributes:
        plan: The game.
        person: The player.
        deal_seed: The player's part in the shuffles; empty for none.
        creating: Returns a context for the creation of a game with an id. Raises a Fault to refuse that.
    """

    plan: GamePlan
    person: Person
    deal_seed: bytes
    creating: Callable[[str], AbstractContextManager[None]]

    def join(self, basis: Basis) -> Decision:
        """Returns the decision to join a game. Raises ActionRefused, NotAdmitted, and as `check_ticket`."""
        self.check_ticket(basis)
        check_admitted(basis.record, self.person)
        is_host = not _has_host(basis.record) and not basis.record.game.reserved
        person = self.person
        join = Join(person.name, is_host=is_host, is_program=person.is_program, deal_seed=self.deal_seed)
        return _seated(basis, _joined(basis, join), self)

    def create(self, basis: Basis) -> Decision:
        """Returns the decision to create a game with the player in it, in one change. Raises as `check_ticket`."""
        self.check_ticket(basis)
        created = create(self.plan.ruleset, self.plan.settings, deal_commitment=commitment_to(basis.deal_secret))
        join = Join(self.person.name, is_host=True, is_program=self.person.is_program, deal_seed=self.deal_seed)
        joined = applied_or_refused(apply(created.game, join, basis.now_ms))
        events = (*created.events, *joined.events)
        return _seated(basis, Applied(advance(None, events), events), self)

    def check_ticket(self, basis: Basis) -> None:
        """Raises TicketRequired, TicketExpired, TicketOutOfScope: also for a ticket for a certain game or seat."""
        check_ticket(basis, self.person)
        ticket = self.person.ticket
        if ticket and (ticket.game_id or ticket.seat):
            raise TicketOutOfScope("game_id" if ticket.game_id else "seat")


@dataclass(frozen=True, slots=True)
class JoinGame(GameCommand):
    """Seats a player, in a started game in place of one who has resigned; the answer has the seat's token.

    Attributes:
        person: The player.
        join_code: The code with which the caller found the game; empty if by its id.
        seat: The seat; 0 for the lowest free one.
        deal_seed: The player's part in the shuffles; empty for none.
    """

    person: Person
    join_code: str
    seat: int
    deal_seed: bytes = b""

    def decide(self, basis: Basis) -> Decision:
        record, person = basis.record, self.person
        invited = invited_in(record, self.request.caller)
        actor = None if invited else token_in(record, self.request.caller)
        is_host = actor == HOST
        if actor is not None and (not is_host or record.game.host_seat):
            raise AlreadySeated
        reserved = invited or _reserved_for(record, person)
        check_ticket(basis, person, reserved or self.seat, is_known=invited is not None)
        if actor is None and not invited and not (reserved and person.ticket):
            check_code(record, self.join_code)
        wanted = reserved or (person.ticket.seat if person.ticket else 0) or self.seat
        takes_over = bool(wanted) and not isinstance(record.game.phase, Lobby)
        check_admitted(record, person, wanted if takes_over else reserved)
        may_be_host = reserved or not record.game.reserved
        if takes_over:
            taking = TakeOverSeat(HOST, wanted, person.name, is_program=person.is_program)
            return _seated(basis, _taken_over(basis, taking), self, actor, wanted)
        join = Join(
            person.name,
            seat=wanted,
            is_host=is_host or (bool(may_be_host) and not _has_host(record)),
            takes_reserved=bool(reserved),
            is_program=person.is_program,
            deal_seed=self.deal_seed,
        )
        return _seated(basis, _joined(basis, join), self, actor)


@dataclass(frozen=True, slots=True)
class AddBot(GameCommand):
    """Seats a bot on behalf of the host or a player in the lobby; in a started game in place of one who has resigned.

    An empty name stands for an unused one, seat 0 for the lowest free one. The bot's token digest is random, so no
    token matches it and only the service acts for the bot.
    """

    level: BotLevel
    name: str
    seat: int

    def decide(self, basis: Basis) -> Decision:
        record = basis.record
        seat = member_in(record, self.request.caller)
        name, bot = self.name or _unused_name(record.game), self.seat
        if bot and not isinstance(record.game.phase, Lobby):
            applied = _taken_over(basis, TakeOverSeat(seat, bot, name, self.level))
        else:
            applied = _joined(basis, Join(name, self.level, bot))
            bot = _new_seat(record.game, applied.game)
        token = SeatToken(bot, basis.chance.token_bytes(DIGEST_BYTES))
        viewer = None if seat == bot else seat
        return Decision(applied, (*valid_tokens(record, applied), token), viewer=viewer, actor=seat, new_seat=bot)


@dataclass(frozen=True, slots=True)
class LeaveGame(GameCommand):
    """Frees the caller's seat in the lobby, also a reserved one, and revokes its token.

    The answer holds a spectator's view.
    """

    def decide(self, basis: Basis) -> Decision:
        record, caller = basis.record, self.request.caller
        seat = invited_in(record, caller) or player_seat_in(record, caller)
        applied = applied_or_refused(apply(record.game, Leave(seat), basis.now_ms))
        return Decision(applied, valid_tokens(record, applied), actor=seat)


def check_code(record: Record, join_code: str) -> None:
    """Raises JoinCodeUnknown for a code that a game no longer has, JoinCodeRequired if it does not admit by its id."""
    if join_code and join_code != record.listing.join_code:
        raise JoinCodeUnknown
    if record.kicked and not join_code and record.listing.visibility is Visibility.UNLISTED:
        raise JoinCodeRequired


def check_ticket(basis: Basis, person: Person, seat: int = 0, *, is_known: bool = False) -> None:
    """Raises TicketRequired, TicketExpired, TicketMalformed, TicketOutOfScope.

    Args:
        basis: The game.
        person: Who joins.
        seat: The seat that the person is to take; 0 for any.
        is_known: Whether a token of the game before says who it is.
    """
    if person.ticket is None:
        if person.needs_ticket and not is_known:
            raise TicketRequired
        return
    person.ticket.check_time(basis.now_ms)
    person.ticket.check_scope(basis.record.game_id, basis.record.listing.labels, seat)


def _reserved_for(record: Record, person: Person) -> int:
    """Returns the seat that is reserved for a person's reference; 0 for none.

    A seat that is reserved for the owner of a token needs a ticket: a reference alone proves nothing.
    """
    by_token = {token.seat for token in record.invited}
    own = (seat.seat for seat in record.game.reserved if record.operator_data.ref_of(seat.seat) == person.player_ref)
    return next((seat for seat in own if person.player_ref and (person.ticket or seat not in by_token)), 0)


def check_admitted(record: Record, person: Person, reserved: int = 0) -> None:
    """Raises WasKicked, PlayerRefTaken for a person whom a lobby does not admit; `reserved` is the person's seat."""
    ref = person.player_ref
    if any((ref and ref == one.player_ref) or are_alike(person.name, one.name) for one in record.kicked):
        raise WasKicked
    if ref and record.operator_data.has(ref, besides=reserved):
        raise PlayerRefTaken


def _has_host(record: Record) -> bool:
    """Returns whether a game has a host. It has none after a host without a host token has left last."""
    return record.game.host_seat is not None or any(token.seat == HOST for token in record.tokens)


def _joined(basis: Basis, join: Join) -> Applied:
    """Returns the engine's result of joining. Raises ActionRefused, also for a name that is like another player's."""
    game = basis.record.game
    applied = applied_or_refused(apply(game, join, basis.now_ms))
    others = [player.name for player in game.players]
    others += [one.name for one in game.reserved if one.seat != join.seat or not join.takes_reserved]
    if any(are_alike(join.name, other) for other in others):
        raise ActionRefused(refused(Reason.PLAYER_ALREADY_JOINED))
    return applied


def _taken_over(basis: Basis, action: TakeOverSeat) -> Applied:
    """Returns the engine's result of taking over a seat. Raises ActionRefused, also as `_joined` for the name."""
    game = basis.record.game
    applied = applied_or_refused(apply(game, action, basis.now_ms))
    if any(are_alike(action.name, player.name) for player in game.players if player.seat != action.taken):
        raise ActionRefused(refused(Reason.PLAYER_ALREADY_JOINED))
    return applied


def _seated(
    basis: Basis, applied: Applied, command: JoinGame | JoinOrCreateGame, actor: int | None = None, taken: int = 0
) -> Decision:
    """Returns the decision that seats a person, with a new token; `taken` is the seat of one who had resigned."""
    before = basis.record
    seat = taken or _new_seat(before.game, applied.game)
    ref, ticket = command.person.player_ref, command.person.ticket
    if not (ref or taken):
        ref = before.operator_data.ref_of(seat)
    tokens = valid_tokens(before, applied)
    seated = Decision(applied, tokens, viewer=seat, actor=actor, new_seat=seat, player_ref=ref, ticket=ticket)
    return command.with_new_token(seated, seat, basis.chance)


def _new_seat(before: Game, after: Game) -> int:
    """Returns the seat of the player who has joined."""
    taken = {player.seat for player in before.players}
    return next(player.seat for player in after.players if player.seat not in taken)


def _unused_name(game: Game) -> str:
    """Returns a name for a bot."""
    names = (f"Bot {name}" for name in itertools.chain(BOT_NAMES, itertools.count(1)))
    return next(name for name in names if not any(are_alike(name, player.name) for player in game.players))
