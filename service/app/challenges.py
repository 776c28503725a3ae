"""Challenges: made, answered, and listed for their two players.

The store has a name for each challenge, whose value is the challenge, and one for each player, whose value lists the
player's open ones. Each changes by compare and set, so of two answers one counts. Both names expire, also if a server
dies between two steps; what a list names then is gone, or over, and is left out.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Final

from engine.room_settings import Bots
from engine.seats import ReservedSeat
from engine.violations import Reason, refused
from service.app.changes import ATTEMPTS
from service.app.commands.lobby import GamePlan
from service.app.creation import GameCreation
from service.app.identity import Chance, inbox_of, new_game_id, requested_game_id
from service.app.names import are_alike
from service.errors import (
    ActionRefused,
    ChallengeNotFound,
    ChallengeOver,
    DuplicateRequest,
    Overloaded,
    StoredFormatUnknown,
    TooManyChallenges,
)
from service.model.challenge import EXPIRE_SECONDS_MAX, OPEN_CHALLENGES_MAX, Challenge, ChallengeState, DeclineReason
from service.model.record import PlayerRef
from service.runtime.join_tickets import Person
from service.runtime.rate_limit import MINUTE, TokenBuckets
from service.storage.snapshot import decode_challenge, encode_challenge
from service.storage.store import Store

MADE_A_MINUTE: Final = 20
"""Most challenges that a player makes in a minute, at one server."""
RECEIVED_A_MINUTE: Final = 60
"""Most challenges that a player gets in a minute, at one server."""
KEPT_AFTER_MS: Final = 600_000
"""How long a challenge is kept after its end, for repeated requests."""


@dataclass(frozen=True, slots=True)
class Player:
    """A player of a key, as a ticket proves it."""

    key: str
    person: Person

    @property
    def ref(self) -> str:
        """The player's reference."""
        return self.person.player_ref


class Challenges:
    """The challenges in a store.

    Args:
        store: The store.
        chance: The source of randomness.
        creation: Creates the games of accepted challenges.
    """

    def __init__(self, store: Store, chance: Chance, creation: GameCreation) -> None:
        self._store = store
        self._chance = chance
        self._creation = creation
        self._pace = TokenBuckets(MINUTE)

    async def make(self, proposed: Challenge, request_key: str, kept_ms: int) -> Challenge:
        """Makes a challenge; returns that of an earlier request with the same key as it is now.

        Args:
            proposed: The challenge, without id and times.
            request_key: Identifies the request; empty for none.
            kept_ms: How long it waits for an answer.
        """
        secret, now_ms = await self._store.secret(), await self._store.now_ms()
        challenge_id = requested_game_id(secret, f"challenge {request_key}") if request_key else ""
        earlier = (await self._load(challenge_id))[0] if challenge_id else None
        if earlier:
            if earlier.fingerprint != proposed.fingerprint:
                raise DuplicateRequest
            return earlier
        challenger, challenged = _inboxes(proposed)
        if self._pace.take(
            [(f"by {challenger}", MADE_A_MINUTE), (f"to {challenged}", RECEIVED_A_MINUTE)], now_ms / 1000
        ):
            raise TooManyChallenges
        made = replace(
            proposed,
            challenge_id=challenge_id or new_game_id(self._chance),
            created_ms=now_ms,
            expires_ms=now_ms + kept_ms,
        )
        await self._enter(challenger, made)
        try:
            await self._enter(challenged, made)
        except TooManyChallenges:
            await self._leave(challenger, made)
            raise
        await self._store.names.point(_name(made.challenge_id), encode_challenge(made), kept_ms=kept_ms + KEPT_AFTER_MS)
        await self._notify(made)
        return made

    async def accept(
        self, challenge_id: str, player: Player, creating: Callable[[], AbstractContextManager[None]]
    ) -> Challenge:
        """Accepts a challenge to a player, and returns it with its game.

        The game follows the acceptance, and its id from that of the challenge: a repeated request creates what an
        earlier one could not. `creating` returns a context for the creation; it raises a Fault to refuse that.
        """
        challenge, stored = await self._received(challenge_id, player)
        if challenge.state is not ChallengeState.ACCEPTED:
            self._check_open(challenge, await self._store.now_ms())
            if player.person.is_program and challenge.settings.bots is Bots.OFF:
                raise ActionRefused(refused(Reason.BOTS_NOT_ALLOWED))
            if are_alike(player.person.name, challenge.challenger_name):
                raise ActionRefused(refused(Reason.PLAYER_ALREADY_JOINED))
            await self._store.check_room()
        with creating():
            game_id = requested_game_id(await self._store.secret(), f"game of challenge {challenge_id}")
            accepted = replace(
                challenge, state=ChallengeState.ACCEPTED, challenged_name=player.person.name, game_id=game_id
            )
            challenge = await self._end(challenge, stored, accepted)
            await self._creation.create_reserved(game_id, _plan(challenge))
            return challenge

    async def decline(self, challenge_id: str, player: Player, reason: DeclineReason) -> Challenge:
        """Declines a challenge to a player, and returns it."""
        challenge, stored = await self._received(challenge_id, player)
        declined = replace(challenge, state=ChallengeState.DECLINED, decline_reason=reason)
        return await self._end_if_open(challenge, stored, declined)

    async def cancel(self, challenge_id: str, player: Player) -> Challenge:
        """Takes a player's own challenge back, and returns it."""
        challenge, stored = await self._load(challenge_id)
        if challenge is None or (challenge.key, challenge.challenger_ref) != (player.key, player.ref):
            raise ChallengeNotFound
        return await self._end_if_open(challenge, stored, replace(challenge, state=ChallengeState.CANCELED))

    async def news(self, key: str, player_ref: str, known: dict[str, ChallengeState]) -> Sequence[Challenge]:
        """Returns the challenges of a player that are not as known, newest first, with their state of now.

        `known` has the open ones that the player knows, and is brought up to date.
        """
        now_ms, listed = await self._store.now_ms(), await self._listed(inbox_of(key, player_ref))
        ids = dict.fromkeys([*(challenge_id for challenge_id, _ in listed), *known])
        found = [challenge for challenge, _ in await asyncio.gather(*map(self._load, ids)) if challenge]
        news = []
        for challenge in sorted(found, key=lambda one: one.created_ms, reverse=True):
            state = challenge.state_at(now_ms)
            if state is known.get(challenge.challenge_id, ChallengeState.EXPIRED):
                continue
            known[challenge.challenge_id] = state
            if state is not ChallengeState.OPEN:
                del known[challenge.challenge_id]
            news.append(replace(challenge, state=state))
        return news

    async def _load(self, challenge_id: str) -> tuple[Challenge | None, str]:
        """Returns a challenge and its stored form; None for one that is not, or can no longer be read."""
        stored = await self._store.names.find(_name(challenge_id))
        try:
            return (decode_challenge(stored) if stored else None), stored
        except StoredFormatUnknown:
            return None, stored

    async def _received(self, challenge_id: str, player: Player) -> tuple[Challenge, str]:
        """Returns a challenge to a player, and its stored form. Raises ChallengeNotFound, also for one of others."""
        challenge, stored = await self._load(challenge_id)
        if challenge is None or (challenge.key, challenge.challenged_ref) != (player.key, player.ref):
            raise ChallengeNotFound
        return challenge, stored

    @staticmethod
    def _check_open(challenge: Challenge, now_ms: int) -> None:
        """Raises ChallengeOver."""
        state = challenge.state_at(now_ms)
        if state is not ChallengeState.OPEN:
            raise ChallengeOver(state.name)

    async def _end_if_open(self, challenge: Challenge, stored: str, ended: Challenge) -> Challenge:
        if challenge.state is not ended.state:
            self._check_open(challenge, await self._store.now_ms())
        return await self._end(challenge, stored, ended)

    async def _end(self, challenge: Challenge, stored: str, ended: Challenge) -> Challenge:
        """Ends an open challenge, and returns it; returns one that has ended so before. Raises ChallengeOver."""
        if challenge.state is ChallengeState.OPEN:
            text, kept_ms = encode_challenge(ended), challenge.expires_ms - challenge.created_ms + KEPT_AFTER_MS
            now = await self._store.names.point(_name(challenge.challenge_id), text, stored, kept_ms=kept_ms)
            challenge = decode_challenge(now)
            for inbox in _inboxes(challenge):
                await self._leave(inbox, challenge)
            await self._notify(challenge)
        if challenge.state is not ended.state:
            raise ChallengeOver(challenge.state.name)
        return challenge

    async def _notify(self, challenge: Challenge) -> None:
        for inbox in _inboxes(challenge):
            await self._store.streams.notify(inbox)

    async def _listed(self, inbox: str) -> list[tuple[str, int]]:
        """Returns the open challenges of a player, each with the time when it expires."""
        return _read_list(await self._store.names.find(_list_name(inbox)))

    async def _enter(self, inbox: str, challenge: Challenge) -> None:
        """Adds a challenge to a player's list. Raises TooManyChallenges."""

        def add(listed: list[tuple[str, int]]) -> list[tuple[str, int]]:
            listed = [one for one in listed if one[1] > challenge.created_ms and one[0] != challenge.challenge_id]
            if len(listed) >= OPEN_CHALLENGES_MAX:
                raise TooManyChallenges
            return [*listed, (challenge.challenge_id, challenge.expires_ms)]

        await self._change_list(inbox, add)

    async def _leave(self, inbox: str, challenge: Challenge) -> None:
        """Removes a challenge from a player's list."""
        await self._change_list(inbox, lambda listed: [one for one in listed if one[0] != challenge.challenge_id])

    async def _change_list(self, inbox: str, change: Callable[[list[tuple[str, int]]], list[tuple[str, int]]]) -> None:
        """Changes a player's list. Raises Overloaded if others change it all the time."""
        name, names = _list_name(inbox), self._store.names
        before = await names.find(name)
        for _ in range(ATTEMPTS):
            wanted = " ".join(f"{challenge_id}:{at_ms}" for challenge_id, at_ms in change(_read_list(before)))
            now = await names.point(name, wanted, before, kept_ms=EXPIRE_SECONDS_MAX * 1000)
            if now == wanted:
                return
            before = now
        raise Overloaded("changes")


def _name(challenge_id: str) -> str:
    return f"challenge:{challenge_id}"


def _list_name(inbox: str) -> str:
    return f"challenges:{inbox}"


def _read_list(text: str) -> list[tuple[str, int]]:
    found = (one.partition(":") for one in text.split())
    return [(challenge_id, int(at_ms)) for challenge_id, _, at_ms in found]


def _inboxes(challenge: Challenge) -> tuple[str, str]:
    """Returns the inboxes of the challenger and of the challenged player."""
    return inbox_of(challenge.key, challenge.challenger_ref), inbox_of(challenge.key, challenge.challenged_ref)


def _plan(challenge: Challenge) -> GamePlan:
    """Returns the game of an accepted challenge."""
    names = (
        (1, challenge.challenger_name, challenge.challenger_ref),
        (2, challenge.challenged_name, challenge.challenged_ref),
    )
    return GamePlan(
        challenge.ruleset,
        challenge.settings,
        labels=challenge.labels,
        key=challenge.key,
        reserved=tuple(ReservedSeat(seat, name) for seat, name, _ in names),
        player_refs=tuple(PlayerRef(1, seat, ref) for seat, _, ref in names),
    )
