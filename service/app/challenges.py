"""Challenges: made, answered, and listed for their two players.

The store has a name for each challenge, whose value is the challenge, and two for each player, whose values list the
open ones that the player has made and received. Each changes by compare and set, so of two answers one counts. All
names expire, also if a server dies between two steps; what a list names then is gone, or over, and is left out.
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
from service.model.challenge import (
    EXPIRE_SECONDS_MAX,
    OPEN_MADE_MAX,
    OPEN_RECEIVED_MAX,
    OPEN_TO_ONE_MAX,
    Challenge,
    ChallengeState,
    DeclineReason,
)
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
        if self._pace.take([(f"by {challenger}", MADE_A_MINUTE)], now_ms / 1000):
            raise TooManyChallenges("MADE", f"you have made {MADE_A_MINUTE} challenges in the last minute")
        if self._pace.take([(f"to {challenged}", RECEIVED_A_MINUTE)], now_ms / 1000):
            raise TooManyChallenges("RECEIVED", f"the player has got {RECEIVED_A_MINUTE} challenges in the last minute")
        made = replace(
            proposed,
            challenge_id=challenge_id or new_game_id(self._chance),
            created_ms=now_ms,
            expires_ms=now_ms + kept_ms,
        )
        await self._enter(_made_list(made), made, self._check_made)
        try:
            await self._enter(_received_list(made), made, self._check_received)
        except TooManyChallenges:
            await self._leave(_made_list(made), made)
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
        ids = dict.fromkeys([*(one.challenge_id for one in listed), *known])
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
            for name in (_made_list(challenge), _received_list(challenge)):
                await self._leave(name, challenge)
            await self._notify(challenge)
        if challenge.state is not ended.state:
            raise ChallengeOver(challenge.state.name)
        return challenge

    async def _notify(self, challenge: Challenge) -> None:
        for inbox in _inboxes(challenge):
            await self._store.streams.notify(inbox)

    async def _listed(self, inbox: str) -> list["_Listed"]:
        """Returns the open challenges of a player, made and received."""
        lists = await asyncio.gather(*(self._store.names.find(f"{start}:{inbox}") for start in (_MADE, _RECEIVED)))
        return [one for text in lists for one in _read_list(text)]

    @staticmethod
    def _check_made(listed: list["_Listed"], new: "_Listed") -> None:
        """Raises TooManyChallenges."""
        if len(listed) >= OPEN_MADE_MAX:
            raise TooManyChallenges("OPEN_MADE", f"{OPEN_MADE_MAX} challenges of yours are open")
        if sum(one.challenged == new.challenged for one in listed) >= OPEN_TO_ONE_MAX:
            raise TooManyChallenges("OPEN_TO_PLAYER", f"{OPEN_TO_ONE_MAX} challenges of yours to this player are open")

    @staticmethod
    def _check_received(listed: list["_Listed"], _: "_Listed") -> None:
        """Raises TooManyChallenges."""
        if len(listed) >= OPEN_RECEIVED_MAX:
            raise TooManyChallenges("OPEN_RECEIVED", f"{OPEN_RECEIVED_MAX} challenges to the player are open")

    async def _enter(
        self, name: str, challenge: Challenge, check: Callable[[list["_Listed"], "_Listed"], None]
    ) -> None:
        """Adds a challenge to a player's list. Raises TooManyChallenges."""
        _, challenged = _inboxes(challenge)
        new = _Listed(challenge.challenge_id, challenge.expires_ms, challenged)

        def add(listed: list[_Listed]) -> list[_Listed]:
            listed = [
                one
                for one in listed
                if one.expires_ms > challenge.created_ms and one.challenge_id != challenge.challenge_id
            ]
            check(listed, new)
            return [*listed, new]

        await self._change_list(name, add)

    async def _leave(self, name: str, challenge: Challenge) -> None:
        """Removes a challenge from a player's list."""
        await self._change_list(
            name, lambda listed: [one for one in listed if one.challenge_id != challenge.challenge_id]
        )

    async def _change_list(self, name: str, change: Callable[[list["_Listed"]], list["_Listed"]]) -> None:
        """Changes a player's list. Raises Overloaded if others change it all the time."""
        names = self._store.names
        before = await names.find(name)
        for _ in range(ATTEMPTS):
            wanted = " ".join(map(str, change(_read_list(before))))
            now = await names.point(name, wanted, before, kept_ms=EXPIRE_SECONDS_MAX * 1000)
            if now == wanted:
                return
            before = now
        raise Overloaded("changes")


_MADE: Final = "challenges-made"
_RECEIVED: Final = "challenges"


@dataclass(frozen=True, slots=True)
class _Listed:
    """An open challenge in a list: when it expires, and the inbox of the challenged player."""

    challenge_id: str
    expires_ms: int
    challenged: str

    def __str__(self) -> str:
        return f"{self.challenge_id}:{self.expires_ms}:{self.challenged}"


def _name(challenge_id: str) -> str:
    return f"challenge:{challenge_id}"


def _made_list(challenge: Challenge) -> str:
    return f"{_MADE}:{_inboxes(challenge)[0]}"


def _received_list(challenge: Challenge) -> str:
    return f"{_RECEIVED}:{_inboxes(challenge)[1]}"


def _read_list(text: str) -> list[_Listed]:
    found = (one.split(":") for one in text.split())
    return [_Listed(challenge_id, int(at_ms), challenged) for challenge_id, at_ms, challenged in found]


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
