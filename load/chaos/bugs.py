"""Seeded bugs: small changes of a copy of the service that the checker must find. They show that it can fail."""

import asyncio
import shutil
import tempfile
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from load.chaos.checker import check
from load.chaos.run import SETTLE_SECONDS, Plan, run
from tools.servers import ROOT

CODE: Final = ("service", "engine")
"""The folders of a copy. Servers in it take everything else from the environment."""
ROUND_SECONDS: Final = 25.0
"""How long a copy is played on before its history is checked."""
MOST_SECONDS: Final = 120.0
"""Within this time a bug must be found."""
KILLS: Final = ("kill a server",)


@dataclass(frozen=True, slots=True)
class Edit:
    """A replacement in a file: a text that must be there once, and what takes its place."""

    file: str
    old: str
    new: str

    def applied(self, text: str) -> str:
        """Returns the text with the replacement. Raises ValueError if it does not apply."""
        if text.count(self.old) != 1:
            raise ValueError(f"the text to replace is {text.count(self.old)} times in {self.file}: {self.old!r}")
        return text.replace(self.old, self.new)


@dataclass(frozen=True, slots=True)
class Bug:
    """A bug: its edits, and the rules of which at least one must find it.

    Attributes:
        name: Its name.
        rules: The names of the rules (violations.RULES).
        edits: What is changed.
        store: The kind of store that shows it.
        faults: The faults that are made; none for no faults at all.
        kinds: The kinds of games that show it; none for all.
    """

    name: str
    rules: frozenset[str]
    edits: tuple[Edit, ...]
    store: str = "redis"
    faults: Collection[str] = ()
    kinds: Collection[str] = ()


def _bug(
    name: str,
    rules: str,
    *edits: Edit,
    store: str = "redis",
    faults: Collection[str] = ("stop a server",),
    kinds: Collection[str] = (),
) -> Bug:
    return Bug(name, frozenset(rules.split(", ")), edits, store, faults, kinds)


_CHANGES: Final = "service/app/changes.py"
_COMMIT: Final = "service/storage/redis/scripts/commit.lua"
_ETAG_FENCE: Final = "if (redis.call('HGET', KEYS[1], 'etag') or '') ~= ARGV[1] then"
_LOADING: Final = (
    '        try:\n            loaded, _ = await self._settle(game_id, "", caller)\n        except StoreUnavailable:\n'
)
_COMMITTING: Final = (
    "        outcome = await (self._store_change(before, commit) if is_change else self._store.games.commit(commit))\n"
)

BUGS: Final = (
    _bug(
        "no fence",
        "lost, doubled, base",
        Edit(_COMMIT, _ETAG_FENCE, "if false then"),
        Edit(_COMMIT, "if newest + 1 ~= tonumber(ARGV[2]) then", "if false then"),
        Edit(_COMMIT, "redis.call('XADD', KEYS[3]", "redis.pcall('XADD', KEYS[3]"),
    ),
    _bug(
        "fence without etag",
        "base",
        Edit(
            _COMMIT,
            _ETAG_FENCE,
            "if (redis.call('HGET', KEYS[1], 'revision') or '0') ~= string.format('%d', ARGV[2] - 1) then",
        ),
        Edit(
            "service/app/commands/turns.py",
            "if (request.revision, request.etag) != (record.game.revision, record.etag):",
            "if request.revision != record.game.revision:",
        ),
    ),
    _bug(
        "memo after the write",
        "repeat",
        Edit(
            "service/storage/redis/games.py",
            "            commit.request_key,\n            encode_memo(commit.memo)",
            '            "",\n            encode_memo(commit.memo)',
        ),
        Edit(
            "service/storage/redis/games.py",
            '        if kind == b"committed":\n',
            '        if kind == b"committed":\n'
            "            if commit.request_key and commit.memo:\n"
            "                requests = keys_of(record.game_id)[1]\n"
            "                memo_bytes = encode_memo(commit.memo)\n"
            '                await __import__("asyncio").sleep(0.5)\n'
            '                await self._nodes.execute(requests, "HSET", requests, commit.request_key, memo_bytes)\n',
        ),
    ),
    _bug(
        "memo without fingerprint",
        "reuse",
        Edit(_CHANGES, "if memo.fingerprint != command.request.fingerprint:", "if not memo.fingerprint:"),
    ),
    _bug(
        "answer before the commit",
        "lost, stale, read",
        Edit(
            _CHANGES,
            _COMMITTING,
            "        if is_change and not is_of_lobby:\n"
            "            self._late = asyncio.create_task(self._store_change(before, commit))\n"
            "            outcome: Outcome = Committed()\n"
            "        else:\n"
            "            outcome = await self._store_change(before, commit)\n",
        ),
    ),
    _bug(
        "stale cache served",
        "stale",
        Edit(
            _CHANGES,
            _LOADING,
            "        cached = self._store.games.cached(game_id)\n"
            "        if cached is not None:\n"
            "            return cached\n" + _LOADING,
        ),
    ),
    _bug(
        "cache believed for a refusal",
        "refusal",
        Edit(
            _CHANGES,
            "        except Fault:\n            raise Overtaken from None\n",
            "        except Fault:\n            raise\n",
        ),
    ),
    _bug(
        "doubled tile",
        "tiles",
        Edit(
            "engine/melding/evolution.py",
            "round_.pool[len(tiles) :], round_.river)",
            "round_.pool[len(tiles) if len(round_.pool) % 7 else 0 :], round_.river)",
        ),
    ),
    _bug(
        "lost tile",
        "tiles",
        Edit(
            "engine/melding/evolution.py",
            "    rack = _with_tiles(round_.rack(seat), tiles)\n    return",
            "    rack = _with_tiles(round_.rack(seat), tiles if len(round_.pool) % 7 else tiles[1:])\n    return",
        ),
    ),
    _bug(
        "doubled time-out",
        "time-out",
        Edit(
            _CHANGES,
            "        await self._store_change(record, Commit(record.etag, after, change))\n",
            "        await self._store_change(record, Commit(record.etag, after, change))\n"
            "        if isinstance(after.game.phase, Playing) and due_ms(after.game) is not None:\n"
            "            late = Basis(after, (due_ms(after.game) or 0) + 1, self._chance)\n"
            "            again = decide_due(late, None)\n"
            "            twice, change = self.after(replace(late, now_ms=loaded.now_ms), again, TIME)\n"
            "            await self._store_change(after, Commit(after.etag, twice, change))\n",
        ),
        kinds=("timed",),
    ),
    _bug(
        "time-outs a minute late",
        "late",
        Edit(
            _CHANGES,
            "        at_ms = earliest_due_ms(loaded.record.game, loaded.now_ms)\n",
            "        at_ms = earliest_due_ms(loaded.record.game, loaded.now_ms)\n"
            "        at_ms = at_ms and at_ms + 60_000\n",
        ),
        kinds=("timed", "pauses"),
    ),
    _bug(
        "another seat's turn",
        "turn",
        Edit("engine/melding/turns/__init__.py", "if round_.turn.seat != seat:", "if not seat:"),
    ),
    _bug(
        "everysec called always",
        "lost, read, watch",
        Edit("service/storage/embedded.py", '"appendfsync": "always"', '"appendfsync": "everysec"'),
        store="embedded",
        faults=("lose power",),
    ),
    _bug(
        "a watcher's gap",
        "watch",
        Edit(
            "service/app/watcher.py",
            "for change in changes[:LAG]:",
            "for change in changes[len(changes) == 2 :][:LAG]:",
        ),
        faults=("stop a server", "kill a server"),
    ),
    _bug(
        "a resume answered with a snapshot",
        "watch",
        Edit(
            "service/app/watcher.py",
            "(position.content is Content.GAMES and not is_current)",
            "not is_current",
        ),
        faults=("stop a server", "kill a server"),
    ),
    _bug(
        "an outbox entry after the commit",
        "archive",
        Edit(
            _CHANGES,
            "        if self._is_archived and after.has_record:\n            commit = await self._announced(commit)\n",
            "",
        ),
        Edit(
            _CHANGES,
            "        if isinstance(outcome, Committed):\n            if bots:\n",
            "        if isinstance(outcome, Committed):\n"
            "            if self._is_archived and after.has_record:\n"
            "                await asyncio.sleep(8)\n"
            "                await self._store.outbox.append(after.game_id)\n"
            "            if bots:\n",
        ),
        faults=KILLS,
    ),
    _bug(
        "a renewed token still valid",
        "token",
        Edit(
            "service/app/commands/tokens.py",
            "return Decision(applied, valid_tokens(basis.record, applied), viewer, actor)",
            "return Decision(applied, basis.record.tokens, viewer, actor)",
        ),
    ),
    _bug(
        "a ticket that takes two seats",
        "ticket",
        Edit(_CHANGES, "kept_ms=TICKET_MS_MAX) != user:", 'kept_ms=TICKET_MS_MAX) == "":'),
        kinds=("tickets",),
    ),
    _bug(
        "a change log behind the commit",
        "feed",
        Edit(
            "service/storage/redis/games.py",
            "is_logged = commit.change and self._log.kept_ms",
            "is_logged = commit.change and self._log.kept_ms and commit.record.game.revision % 5",
        ),
    ),
    _bug(
        "a joker that counts nothing",
        "score",
        Edit(
            "engine/melding/scoring.py",
            "return sum(ruleset.score_joker_penalty if t in JOKERS",
            "return sum(0 if t in JOKERS",
        ),
    ),
    _bug(
        "a bank that does not run",
        "bank",
        Edit("engine/clocks.py", "min(left_ms - used_ms + ", "min(left_ms + "),
        kinds=("bank",),
    ),
    _bug(
        "absent one turn too late",
        "absence",
        Edit(
            "engine/turns/absence.py",
            "0 < settings.absent_after_timeouts <= player.timeouts_in_a_row",
            "0 < settings.absent_after_timeouts < player.timeouts_in_a_row",
        ),
        kinds=("timed",),
    ),
    _bug(
        "a pause cut short",
        "pause",
        Edit(
            "engine/timers.py",
            "    return at_ms is not None and now_ms > at_ms\n",
            "    return at_ms is not None and now_ms > at_ms - 5_000 * isinstance(game.phase, RoundOver)\n",
        ),
        kinds=("pauses",),
    ),
)
"""The bugs, with the rules that find them."""


@dataclass(frozen=True, slots=True)
class Found:
    """A bug's name, after how many seconds it was found, None if it was not, and its rules that found it."""

    bug: str
    seconds: float | None
    by: Sequence[str]

    @property
    def is_in_time(self) -> bool:
        """Whether it was found within MOST_SECONDS."""
        return self.seconds is not None and self.seconds <= MOST_SECONDS


def check_edits(bug: Bug, root: Path = ROOT) -> None:
    """Raises ValueError if a bug's edits do not apply to a checkout."""
    texts: dict[str, str] = {}
    for edit in bug.edits:
        texts[edit.file] = edit.applied(texts.get(edit.file) or (root / edit.file).read_text())


def copy_with(bug: Bug, folder: Path) -> None:
    """Copies the code into a folder and applies a bug. Raises ValueError."""
    for name in CODE:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for edit in bug.edits:
        path = folder / edit.file
        path.write_text(edit.applied(path.read_text()))


def seek(bug: Bug, seed: int) -> Found:
    """Plays on a copy with a bug until it is found, or the time is over."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="chaos-bug-") as folder:
        copy_with(bug, Path(folder))
        while time.monotonic() - began < MOST_SECONDS:
            settle_seconds = SETTLE_SECONDS if "archive" in bug.rules else 5.0
            plan = Plan(
                bug.store, seed, ROUND_SECONDS, Path(folder), bug.faults, 16, 2.0, 0.5, settle_seconds, bug.kinds
            )
            done = asyncio.run(run(plan))
            verdict = check(done.entries)
            by = sorted(bug.rules & {violation.rule for violation in verdict.violations})
            if by:
                return Found(bug.name, time.monotonic() - began, by)
            seed += 1
    return Found(bug.name, None, ())
