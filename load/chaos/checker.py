"""The checker of histories. It knows the contract's promises and the rules' arithmetic, and nothing of the service.

Each game is a register: its changes form one chain of etags. What callers got must fit into that chain, and into
the order of their calls in real time: a call that began after another one was answered came after it.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from typing import Any, Final

from load.chaos.history import (
    OK,
    UNANSWERED,
    Archived,
    Call,
    Entry,
    Fault,
    Fed,
    Mischief,
    Run,
    StoredGame,
    Watched,
    revision_of,
)
from load.chaos.replay import ACTIONS, PLAYER, TILES, Replay, Timed
from load.chaos.violations import LOSSES, Violation

HOST: Final = 3
"""The number of the contract's CHANGE_CAUSE_HOST."""
OVERTAKEN: Final = frozenset({"STALE_STATE", "TURN_TIMED_OUT", "NOT_YOUR_TURN"})
"""Refusals of a turn because the game has moved on."""
MOST_BEHIND: Final = 64
"""The contract: a watcher that falls more changes behind, after it has resumed, gets a snapshot in place of them."""
EXPIRY_SLACK: Final = 15.0
"""How long after its time a lobby may still be there, in seconds."""
MOST_LATE: Final = 10.0
"""How late may be what time makes, in seconds without faults. Servers look three times a second; the claim of one that
was killed lasts two seconds, and calls of the store may wait for a few. The rest is for a busy machine."""
EVENT_OF: Final = {"draw": "tiles_drawn", "play": "tiles_played", "pass": "turn_passed"}
"""The event of each action."""


@dataclass(slots=True)
class Verdict:
    """The violations and the counts of a history."""

    violations: list[Violation] = field(default_factory=list)
    losses: list[Violation] = field(default_factory=list)
    """Violations that the pages allow on a store like this one."""
    calls: int = 0
    unanswered: int = 0
    games: int = 0
    changes: int = 0
    acknowledged: int = 0
    """Changes that were acknowledged."""
    watched: int = 0
    """Changes that watchers have got."""
    time_outs: int = 0
    latest_seconds: float = 0.0
    """How late the latest time-out or round came, in seconds without faults."""
    faults: Counter[str] = field(default_factory=Counter)
    mischief: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    """From the first call to the last."""
    run: Run | None = None

    def add(self, other: "Verdict") -> None:
        """Adds what another history has shown."""
        self.violations += other.violations
        self.losses += other.losses
        self.faults += other.faults
        self.mischief += other.mischief
        for name in ("calls", "unanswered", "games", "changes", "acknowledged", "watched", "time_outs", "seconds"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.latest_seconds = max(self.latest_seconds, other.latest_seconds)


@dataclass(slots=True)
class GameHistory:
    """The part of a history that is about one game."""

    game: str = ""
    calls: list[Call] = field(default_factory=list)
    watched: list[Watched] = field(default_factory=list)
    fed: list[str] = field(default_factory=list)
    archived: str | None = None
    stored: StoredGame | None = None

    @property
    def etags(self) -> Sequence[str]:
        """The chain of etags, from revision 1 on."""
        return [change["etag"] for change in self.stored.changes] if self.stored else []

    @property
    def is_abandoned(self) -> bool:
        """Whether it is a lobby that was left alone, to see it expire."""
        return any(call.action == "abandon" for call in self.calls)


def check(entries: Iterable[Entry]) -> Verdict:
    """Returns what a history shows. Raises ValueError if it does not begin with its Run."""
    entries = iter(entries)
    run = next(entries, None)
    if not isinstance(run, Run):
        raise ValueError("a history begins with the entry of its run")  # noqa: TRY004 - a wrong file
    verdict = Verdict(run=run)
    faults: list[Fault] = []
    games = _games(entries, verdict, faults)
    times = _Times(faults)
    for one in games.values():
        _check_game(one, run, times, verdict)
    verdict.violations += _tickets(games.values())
    ends = [call.ended for one in games.values() for call in one.calls]
    verdict.seconds = max(ends, default=0.0) - min(ends, default=0.0)
    if run.is_lossy:
        verdict.losses = [one for one in verdict.violations if one.rule in LOSSES]
        verdict.violations = [one for one in verdict.violations if one.rule not in LOSSES]
    return verdict


def _games(  # noqa: C901 - a line for each kind
    entries: Iterable[Entry], verdict: Verdict, faults: list[Fault]
) -> Mapping[str, GameHistory]:
    """Returns the history of each game, collects faults, and counts them and mischief by name."""
    games: dict[str, GameHistory] = defaultdict(GameHistory)
    for entry in entries:
        match entry:
            case Call(game=game):
                games[game].calls.append(entry)
            case Watched(game=game):
                games[game].watched.append(entry)
            case StoredGame(game=game):
                games[game].stored = entry
            case Fed(game=game, etag=etag):
                games[game].fed.append(etag)
            case Archived(game=game, etag=etag):
                games[game].archived = etag
            case Fault(name=name):
                verdict.faults[name] += 1
                faults.append(entry)
            case Mischief(name=name, count=count):
                verdict.mischief[name] += count
            case Run():
                raise ValueError("a history is of one run")
    games.pop("", None)  # calls that created nothing
    for game, one in games.items():
        one.game = game
    return games


class _Times:
    """The times at which nothing was wrong."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self._faults: list[tuple[float, float]] = []
        """When there were faults, without overlaps."""
        for fault in sorted(faults, key=lambda fault: fault.began):
            last = self._faults[-1][1] if self._faults else -inf
            if fault.ended > last:
                self._faults.append((max(fault.began, last), fault.ended))

    def with_faults(self, began: float, ended: float) -> float:
        """Returns for how many seconds of a time there were faults."""
        return sum(max(0.0, min(ended, until) - max(began, since)) for since, until in self._faults)


def _check_game(one: GameHistory, run: Run, times: _Times, verdict: Verdict) -> None:
    verdict.calls += len(one.calls)
    verdict.unanswered += sum(call.status == UNANSWERED for call in one.calls)
    if one.is_abandoned:
        verdict.violations += _expiry(one, run)
        return
    verdict.games += 1
    verdict.changes += len(one.etags)
    verdict.acknowledged += len({call.etag for call in one.calls if call.status == OK and not call.is_read})
    verdict.watched += sum(update.update == "change" for update in one.watched)
    for rule in (_chain, _changes, _bases, _reads, _repeats, _refusals, _watches, _tokens, _feed, _archive):
        verdict.violations += rule(one)
    replay = Replay(one.game)
    for change in one.stored.changes if one.stored and one.stored.is_whole else ():
        verdict.violations += replay.apply(change)
    verdict.time_outs += replay.time_outs
    for timed, seconds in _lateness(one, replay.timed, times):
        verdict.latest_seconds = max(verdict.latest_seconds, seconds)
        if seconds > MOST_LATE:
            text = f"{timed.what} ({timed.etag}) came {seconds:.1f} s after its time, not counting times with faults"
            verdict.violations.append(Violation("late", one.game, text))


def _lateness(one: GameHistory, timed: Iterable[Timed], times: _Times) -> Iterator[tuple[Timed, float]]:
    """Yields what time made, and how late at least it was, in seconds without faults.

    The store's clock may step forward, and callers may notice a change late: the smaller one counts of how late it was
    by that clock, and of how much longer than it should callers saw what was before. All faults since then count.
    """
    first_seen: dict[str, float] = {}
    answered = ((call.etag, call.ended) for call in one.calls if call.status == OK)
    updated = ((update.etag, update.at) for update in one.watched if update.update in {"change", "snapshot"})
    for etag, at in (*answered, *updated):
        first_seen[etag] = min(at, first_seen.get(etag, at))
    known = inf
    for etag in reversed(one.etags):
        first_seen[etag] = known = min(known, first_seen.get(etag, known))
    for change in timed:
        began, ended = first_seen[change.since], first_seen[change.etag]
        if ended < inf:
            late = min(change.late_ms / 1_000, ended - began - change.after_ms / 1_000)
            yield change, late - times.with_faults(began, ended)


def _expiry(one: GameHistory, run: Run) -> Iterator[Violation]:
    """A lobby lives as long as the settings say after its only change."""
    created = [call for call in one.calls if call.action == "abandon" and call.status == OK]
    if not created:
        return
    earliest = min(call.began for call in created) + run.lobby_seconds - run.clock_seconds
    latest = max(call.ended for call in created) + run.lobby_seconds + run.clock_seconds + EXPIRY_SLACK
    for call in one.calls:
        if call.is_read and call.status == OK and call.began > latest:
            yield Violation("expiry", one.game, f"a lobby is there {call.began - latest:.1f} s after its time")
        if call.is_read and call.status == "GAME_NOT_FOUND" and call.ended < earliest:
            yield Violation("expiry", one.game, f"a lobby is gone {earliest - call.ended:.1f} s before its time")


def _chain(one: GameHistory) -> Iterator[Violation]:
    revisions = [revision_of(etag) for etag in one.etags]
    if revisions != list(range(1, len(revisions) + 1)):
        yield Violation("order", one.game, f"the stored revisions are {revisions}")
    if len(set(one.etags)) < len(one.etags):
        yield Violation("order", one.game, "two stored changes have one etag")


def _changes(one: GameHistory) -> Iterator[Violation]:
    """Every acknowledged change is stored, and every stored change of a player follows from one request."""
    etags = set(one.etags)
    requests, open_requests = _requests(one)
    for etag in requests.keys() - etags:
        yield Violation("lost", one.game, f"the change {etag} was acknowledged and is not stored")
    for change in one.stored.changes if one.stored else ():
        found = requests.get(change["etag"], {})
        if len(found) > 1:
            yield Violation("doubled", one.game, f"{len(found)} requests were acknowledged with {change['etag']}")
        if found:
            yield from _action(one.game, change, next(iter(found.values())))
        elif change.get("cause") in {PLAYER, HOST}:
            key = _key(change)
            if not open_requests[key]:
                yield Violation("doubled", one.game, f"no request explains the change {change['etag']} ({key})")
            open_requests[key] -= 1


def _requests(one: GameHistory) -> tuple[Mapping[str, Mapping[tuple[str, str], Call]], Counter[tuple[int, str]]]:
    """Returns the requests that were acknowledged, by etag, and how many were not, by seat and action."""
    acknowledged: dict[str, dict[tuple[str, str], Call]] = defaultdict(dict)
    sent: dict[tuple[str, str], Call] = {}
    for call in one.calls:
        if call.is_read:
            continue
        request = call.token, call.request_id
        if call.status == OK:
            acknowledged[call.etag][request] = call
        if call.status in {OK, UNANSWERED}:
            sent.setdefault(request, call)
    answered = {request for some in acknowledged.values() for request in some}
    return acknowledged, Counter((call.seat, call.action) for request, call in sent.items() if request not in answered)


def _names(change: Mapping[str, Any]) -> list[str]:
    return [name for event in change.get("events", ()) for name in event]


def _key(change: Mapping[str, Any]) -> tuple[int, str]:
    """Returns seat and action of a change that a player has made."""
    names = _names(change)
    for action, event in {**EVENT_OF, "resign": "player_resigned", "renew": "seat_token_renewed"}.items():
        if event in names:
            return change.get("cause_seat", 0), action
    if "game_created" in names or "player_joined" in names:
        return 0, "create" if "game_created" in names else "join"
    return change.get("cause_seat", 0), "start" if "round_started" in names else "other"


def _action(game: str, change: Mapping[str, Any], call: Call) -> Iterator[Violation]:
    """The change of an acknowledged turn is by the seat that sent it, and what it sent."""
    expected = EVENT_OF.get(call.action)
    if expected and (expected not in _names(change) or change.get("cause_seat") != call.seat):
        names = ", ".join(name for name in _names(change) if name in ACTIONS)
        yield Violation("action", game, f"seat {call.seat} was acknowledged {call.action}, stored is {names}")


def _bases(one: GameHistory) -> Iterator[Violation]:
    before = dict(pairwise(["", *one.etags]))
    follows = {after: base for base, after in before.items()}
    for call in one.calls:
        if call.status == OK and call.base and not call.is_read and follows.get(call.etag, call.base) != call.base:
            yield Violation("base", one.game, f"{call.etag} follows {follows[call.etag]}, its player saw {call.base}")


def _reads(one: GameHistory) -> Iterator[Violation]:
    """Reads show states that were, whole, and none that is older than what was known before they began."""
    etags, known = set(one.etags), _Known(one)
    for call in one.calls:
        if call.tiles and call.tiles != TILES:
            yield Violation("tiles", one.game, f"a game at {call.etag} has {call.tiles} tiles")
        if not call.is_read:
            continue
        if call.status == "GAME_NOT_FOUND":
            yield Violation("read", one.game, "a game that was created was not found")
        if call.status != OK:
            continue
        if call.etag not in etags:
            yield Violation("read", one.game, f"the state {call.etag} was read and is not stored")
        if revision_of(call.etag) < known.before(call.began):
            yield Violation("stale", one.game, f"{call.etag} was read after revision {known.before(call.began)}")


class _Known:
    """Which revision of a game was known when."""

    def __init__(self, one: GameHistory) -> None:
        seen = [(call.ended, revision_of(call.etag)) for call in one.calls if call.status == OK]
        seen += [
            (update.at, revision_of(update.etag)) for update in one.watched if update.update in {"change", "snapshot"}
        ]
        self._times: list[float] = []
        self._revisions: list[int] = []
        highest = 0
        for at, revision in sorted(seen):
            highest = max(highest, revision)
            self._times.append(at)
            self._revisions.append(highest)

    def before(self, at: float) -> int:
        """Returns the highest revision that was known before a time; 0 for none."""
        place = bisect_left(self._times, at)
        return self._revisions[place - 1] if place else 0


def _repeats(one: GameHistory) -> Iterator[Violation]:
    """A request id has one content and one answer."""
    attempts: dict[tuple[str, str], list[Call]] = defaultdict(list)
    for call in one.calls:
        if not call.is_read:
            attempts[call.token, call.request_id].append(call)
    for (_, request_id), calls in attempts.items():
        calls.sort(key=lambda call: call.began)
        same = [call for call in calls if call.content == calls[0].content]
        if len({call.answer for call in same if call.status == OK}) > 1:
            yield Violation("repeat", one.game, f"the request {request_id} got different answers")
        if any(call.status == OK for call in same) and any(call.status in OVERTAKEN for call in same):
            yield Violation("repeat", one.game, f"the request {request_id} was executed, and refused as outdated")
        if any(call.status == OK and call.content != calls[0].content for call in calls):
            yield Violation("reuse", one.game, f"the id {request_id} was accepted with another content")


def _refusals(one: GameHistory) -> Iterator[Violation]:
    """A turn is refused as outdated only if the game was another one at some time during the call."""
    first_sent: dict[str, float] = {}
    began: dict[tuple[str, str], float] = {}
    for call in sorted(one.calls, key=lambda call: call.began):
        if not call.is_read:
            began.setdefault((call.token, call.request_id), call.began)
            if call.status == OK:
                first_sent.setdefault(call.etag, began[call.token, call.request_id])
    following = dict(pairwise(one.etags))
    last = one.etags[-1] if one.etags else ""
    for call in one.calls:
        if call.status != "STALE_STATE" or not call.base:
            continue
        was_next_sent = first_sent.get(following.get(call.base, ""))
        if call.base == last or (was_next_sent is not None and was_next_sent > call.ended):
            yield Violation("refusal", one.game, f"a turn on {call.base} was refused as outdated, when it was current")


def _watches(one: GameHistory) -> Iterator[Violation]:
    etags = set(one.etags)
    last = one.etags[-1] if one.etags else ""
    watchers: dict[str, list[Watched]] = defaultdict(list)
    for update in one.watched:
        watchers[update.watch].append(update)
    for watch, updates in watchers.items():
        position, before = "", ""
        for update in updates:
            expected = revision_of(position) + 1
            skipped = revision_of(update.etag) - revision_of(position)
            if update.update == "resume" and position and not update.etag:
                yield Violation("watch", one.game, f"the watcher {watch} could not resume from {position}")
            if update.update == "snapshot" and position and (before == "resume" or 0 <= skipped <= MOST_BEHIND):
                text = f"the watcher {watch} at {position} got a snapshot of {update.etag} in place of each change"
                yield Violation("watch", one.game, text)
            if update.update == "change" and revision_of(update.etag) != expected:
                yield Violation("watch", one.game, f"the watcher {watch} got {update.etag} in place of {expected}")
            if update.update == "snapshot" and revision_of(update.etag) < revision_of(position):
                yield Violation("watch", one.game, f"the watcher {watch} went back from {position} to {update.etag}")
            if update.etag and update.etag not in etags:
                yield Violation("watch", one.game, f"the watcher {watch} got {update.etag}, which is not stored")
            if update.update == "end" and update.etag != last:
                yield Violation("watch", one.game, f"the watcher {watch} has {update.etag} at the end, not {last}")
            position, before = update.etag, update.update


def _tokens(one: GameHistory) -> Iterator[Violation]:
    """Nothing but repeated requests is accepted with a token after its replacement was acknowledged."""
    void_at: dict[str, float] = {}
    first: dict[tuple[str, str], float] = {}
    for call in one.calls:
        if call.method == "RenewSeatToken" and call.status == OK:
            void_at[call.token] = min(call.ended, void_at.get(call.token, call.ended))
        if not call.is_read:
            request = call.token, call.request_id
            first[request] = min(call.began, first.get(request, call.began))
    for call in one.calls:
        void = void_at.get(call.token)
        began = call.began if call.is_read else first[call.token, call.request_id]
        if void is not None and call.status == OK and began > void:
            yield Violation("token", one.game, f"{call.method} was accepted with a token that was replaced")


def _tickets(games: Iterable[GameHistory]) -> Iterator[Violation]:
    """A join ticket takes one seat, in one game, for one request, however often that is repeated."""
    uses: dict[str, list[Call]] = defaultdict(list)
    for one in games:
        for call in one.calls:
            if call.ticket:
                uses[call.ticket].append(call)
    for calls in uses.values():
        requests = {(call.game, call.request_id) for call in calls}
        accepted = {(call.game, call.request_id) for call in calls if call.status == OK}
        refused = {(call.game, call.request_id) for call in calls if call.status == "TICKET_USED"}
        if len(accepted) > 1:
            games_of = len({game for game, _ in accepted})
            text = f"one ticket was accepted for {len(accepted)} requests in {games_of} games"
            yield Violation("ticket", calls[0].game, text)
        for game, request_id in refused & (accepted if len(requests) > 1 else requests):
            yield Violation("ticket", game, f"the request {request_id} was refused for a ticket that it used itself")


def _feed(one: GameHistory) -> Iterator[Violation]:
    first: list[str] = list(dict.fromkeys(one.fed))
    if missing := [etag for etag in one.etags if etag not in set(first)]:
        yield Violation("feed", one.game, f"the feed lacks {missing[:3]}")
    if unknown := [etag for etag in first if etag not in set(one.etags)]:
        yield Violation("feed", one.game, f"the feed has {unknown[:3]}, which are not stored")
    if any(revision_of(one_etag) > revision_of(other) for one_etag, other in pairwise(first)):
        yield Violation("feed", one.game, "the feed sent changes out of order")


def _archive(one: GameHistory) -> Iterator[Violation]:
    is_over = one.stored is not None and one.stored.state == "GAME_STATE_FINISHED"
    if is_over and one.archived is None:
        yield Violation("archive", one.game, "a finished game is not in the archive")
    if one.archived is not None and one.archived not in one.etags[-1:]:
        yield Violation("archive", one.game, f"the archive has {one.archived}, not {one.etags[-1:]}")
