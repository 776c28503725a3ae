"""The use cases on a store, made once for each server."""

from dataclasses import dataclass

from service.app.challenges import Challenges
from service.app.changes import ChangeLoop
from service.app.creation import GameCreation
from service.app.drafts import Drafts
from service.app.games import Games
from service.app.history import Archive
from service.app.identity import Chance
from service.app.presence import Presence
from service.app.quick_play import QuickPlay
from service.storage.store import Store


@dataclass(frozen=True, slots=True)
class UseCases:
    """The use cases.

    Attributes:
        changes: Changes games by commands.
        creation: Creates games.
        quick_play: Finds or creates games for players.
        challenges: Games that players propose to others.
        games: Reads games.
        drafts: Saves drafts.
        presence: Has the owners of seats marked as seen.
    """

    changes: ChangeLoop
    creation: GameCreation
    quick_play: QuickPlay
    challenges: Challenges
    games: Games
    drafts: Drafts
    presence: Presence


def use_cases(store: Store, chance: Chance, bot_wait_ms: int, archive: Archive | None = None) -> UseCases:
    """Returns the use cases.

    Args:
        store: The store.
        chance: The source of randomness.
        bot_wait_ms: How long after a change a bot that has not acted counts as forgotten.
        archive: Has finished games that the store no longer has; None: finished games are not archived.
    """
    presence = Presence(store)
    changes = ChangeLoop(store, chance, bot_wait_ms, presence.seen, is_archived=archive is not None)
    creation = GameCreation(store, chance, changes)
    quick_play = QuickPlay(store, chance, changes, creation)
    games = Games(store, changes, presence, archive)
    challenges = Challenges(store, chance, creation)
    return UseCases(changes, creation, quick_play, challenges, games, Drafts(store, changes), presence)
