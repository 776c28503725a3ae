"""Creating games: new ones, rematches, and those of quick play with their first player."""

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace

from engine.fair_deal import SEED_BYTES, commitment_to
from engine.game import Game
from engine.melding.deal import start_of
from engine.melding.events import RoundStarted
from engine.melding.ruleset import Ruleset as MeldingRuleset
from engine.room_settings import FairDeal, RoomSettings
from engine.seats import HOST
from engine.turns import create, create_rematch
from service.app.changes import ATTEMPTS, ChangeLoop, Overtaken, replay, reserve_code
from service.app.commands.command import Answer, Basis, Decision, RequestIdentity
from service.app.commands.lobby import CreateGame, GamePlan, JoinOrCreateGame
from service.app.commands.rematch import OpenRematch, RematchMissing
from service.app.identity import Chance, deal_secret, new_game_id, rematch_game_id, requested_game_id
from service.errors import StaleState
from service.model.change import NO_ETAG, Cause, CauseKind, Commit
from service.model.record import Listing, OperatorData, PlayerRef, Record
from service.storage.store import Store


class GameCreation:
    """Creates games in a store.

    Args:
        store: The store.
        chance: The source of randomness.
        changes: Commits them.
    """

    def __init__(self, store: Store, chance: Chance, changes: ChangeLoop) -> None:
        self._store = store
        self._chance = chance
        self._changes = changes

    async def create(self, command: CreateGame, answer: Answer) -> bytes:
        """Creates a game and returns the answer."""
        return await self._changes.retrying(self._try_create, command, answer)

    async def _try_create(self, command: CreateGame, answer: Answer) -> bytes:
        key = command.request.key
        game_id = requested_game_id(await self._store.secret(), key) if key else new_game_id(self._chance)
        loaded = await self._store.games.load(game_id, key)
        if loaded.memo:
            return replay(loaded.memo, command, answer)
        if loaded.record:  # the store has dropped the memo; the game and its place in the lists must not change
            raise StaleState(loaded.record.game.revision)
        nonce, secret = await self._new_deals(command.plan.settings)
        decision = command.decide(self._chance, commitment_to(secret))
        basis = await self._prepare(game_id, decision.applied.game, command.plan, loaded.now_ms, nonce)
        try:
            return await self._changes.commit(command, answer, basis, decision)
        except Overtaken:
            raise StaleState(basis.record.game.revision) from None

    async def _new_deals(self, settings: RoomSettings) -> tuple[bytes, bytes]:
        """Returns the nonce and the secret of a new game's deals; empty without FairDeal.COMMITTED."""
        if settings.fair_deal is FairDeal.OFF:
            return b"", b""
        nonce = self._chance.token_bytes(SEED_BYTES)
        return nonce, deal_secret(await self._store.secret(), nonce)

    async def _prepare(self, game_id: str, game: Game, plan: GamePlan, now_ms: int, deal_nonce: bytes = b"") -> Basis:
        """Returns a game to create, after reserving its join code and listing it.

        This precedes the commit: a list or a code may name a missing game, but no game lacks one.
        """
        await self._store.check_room()
        listing = Listing(plan.visibility, await reserve_code(self._store, game_id), plan.labels, plan.key)
        operator_data = OperatorData(plan.operator_labels, plan.player_refs)
        start = self._start(plan, len(game.position_seats))
        new = Record(
            game_id,
            game,
            NO_ETAG,
            (),
            now_ms,
            now_ms,
            listing,
            operator_data=operator_data,
            position=start,
            deal_nonce=deal_nonce,
        )
        await self._store.lists.index(new)
        return Basis(new, now_ms, self._chance)

    def _start(self, plan: GamePlan, players: int) -> RoundStarted | None:
        """Returns the start of a plan's position, with the pool shuffled if it is not given."""
        position, ruleset = plan.position, plan.ruleset
        if position is None or not isinstance(ruleset, MeldingRuleset):
            return None
        return start_of(position, ruleset, self._chance.shuffle(ruleset.tiles(players)))

    async def join_or_create(self, command: JoinOrCreateGame, game_id: str, answer: Answer) -> bytes:
        """Seats a player in a game, or creates the game with the player in it, and returns the answer.

        Raises ActionRefused if the game does not accept the player.
        """
        revision = 0
        for _ in range(ATTEMPTS):
            loaded = await self._store.games.load(game_id, command.request.key)
            if loaded.memo:
                return replay(loaded.memo, command, answer)
            with contextlib.suppress(Overtaken):
                if loaded.record:
                    revision = loaded.record.game.revision
                    basis = Basis(loaded.record, loaded.now_ms, self._chance)
                    decision = command.join(basis)
                    await self._changes.check_cost(command, basis, decision)
                    return await self._changes.commit(command, answer, basis, decision)
                with command.creating(game_id):
                    nonce, secret = await self._new_deals(command.plan.settings)
                    game = Game(command.plan.ruleset, command.plan.settings)
                    new = await self._prepare(game_id, game, command.plan, loaded.now_ms, nonce)
                    new = replace(new, deal_secret=secret)
                    return await self._changes.commit(command, answer, new, command.create(new))
        raise StaleState(revision)

    async def open_rematch(
        self,
        game_id: str,
        request: RequestIdentity,
        answer: Answer,
        creating: Callable[[str], AbstractContextManager[None]],
    ) -> bytes:
        """Creates the rematch of a game that is over, then announces it there. Raises RematchExists.

        The rematch's id follows from the game's. So a call that finds the first step done, by another call or before a
        server died, continues with the second. `creating` is as in JoinOrCreateGame.
        """
        rematch = OpenRematch(request, game_id, rematch_game_id(await self._store.secret(), game_id))
        try:
            return await self._changes.run(rematch, answer)
        except RematchMissing as missing:
            with creating(rematch.new_game_id):
                await self._create_rematch(rematch.new_game_id, missing.record)
        return await self._changes.run(replace(rematch, is_created=True), answer)

    async def _create_rematch(self, game_id: str, record: Record) -> None:
        """Creates the rematch of a game that is over under an id, unless a game has it.

        Its seats are reserved for the players of the old game: the tokens of the old game take them, for new tokens. A
        host without a seat keeps the host token, otherwise the first to come is the host. Bots have their seats.
        """
        loaded = await self._store.games.load(game_id)
        if loaded.record:
            return
        nonce, secret = await self._new_deals(record.game.settings)
        applied = create_rematch(record.game, commitment_to(secret))
        listing, operator = record.listing, record.operator_data
        plan = GamePlan(
            record.game.ruleset,
            record.game.settings,
            listing.visibility,
            listing.labels,
            listing.key,
            operator.labels,
            player_refs=_refs_at_creation(operator),
        )
        is_host_seated = record.game.host_seat is not None
        tokens = tuple(token for token in record.tokens if token.seat != HOST or not is_host_seated)
        await self._commit_new(game_id, plan, Decision(applied, tokens), loaded.now_ms, nonce)

    async def create_reserved(self, game_id: str, plan: GamePlan) -> None:
        """Creates a game under an id, unless a game has it. It has no host token: its first player is the host."""
        loaded = await self._store.games.load(game_id)
        if loaded.record is None:
            nonce, secret = await self._new_deals(plan.settings)
            commitment = commitment_to(secret)
            created = create(plan.ruleset, plan.settings, plan.reserved, deal_commitment=commitment)
            await self._commit_new(game_id, plan, Decision(created, ()), loaded.now_ms, nonce)

    async def _commit_new(
        self, game_id: str, plan: GamePlan, decision: Decision, now_ms: int, deal_nonce: bytes
    ) -> None:
        basis = await self._prepare(game_id, decision.applied.game, plan, now_ms, deal_nonce)
        after, change = self._changes.after(basis, decision, Cause(CauseKind.HOST))
        await self._store.games.commit(Commit(NO_ETAG, after, change))  # a conflict: another call has created it
        await self._changes.note_players(after)


def _refs_at_creation(operator: OperatorData) -> tuple[PlayerRef, ...]:
    """Returns the references of a game's people, one a seat, for a game that begins with them in their seats."""
    refs = {ref.seat: replace(ref, revision=1) for ref in operator.player_refs if not ref.has_left}
    return tuple(refs.values())
