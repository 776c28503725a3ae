"""The best turn of a situation: which search answers it, and what it may leave untouched.

For nearly all rules a turn is a question of faces alone (problem.py). Where it matters which meld a tile or a joker
came from, that question is asked first: its answer can only be too good. If the rules allow it, it is the best; if
not, guarded.py looks further.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from typing import Final

from engine.analysis import Situation
from engine.melds import Meld, MeldKind, as_proposed
from engine.play import Play
from engine.rules import judge
from engine.ruleset import InitialMeldSameTurnTablePlay
from engine.solver.answers import BestTurn, Budget, Objective, Turn
from engine.solver.arrangement import Lay, best_lay, costs_less, fewest_changed, lays_a_rack_tile
from engine.solver.few_tiles import are_few
from engine.solver.guarded import is_guarded, rearrangements
from engine.solver.joker_search import are_free
from engine.solver.least_change import few, fewest
from engine.solver.openings import best_opening, least_openings, own_melds
from engine.solver.problem import Problem, problem, weight
from engine.solver.rearrangement import Guarded, Melds
from engine.solver.search import Meter, OutOfBudget
from engine.table import count_tiles, identity
from engine.tiles import JOKER, Tile, in_order, without


@dataclass(frozen=True, slots=True)
class Candidate:
    """A turn that has been found: what it costs, the places of the melds that change, what there is instead of them.

    Attributes:
        is_least_change: Whether no turn that costs as much changes fewer melds.
    """

    cost: int
    changed: frozenset[int]
    melds: Melds
    is_least_change: bool = True


@dataclass(frozen=True)
class Question:
    """What a player can do without the River, or with one tile of it.

    Attributes:
        situation: The situation.
        objective: What is best.
        meter: The budget.
        river_index: Where the River is pulled from, if it is.
        played: Tiles of the rack that must be played.
        left: Tiles of the rack that must not.
        asks_least_change: Whether the fewest melds shall change.
    """

    situation: Situation
    objective: Objective
    meter: Meter
    river_index: int | None = None
    played: tuple[Tile, ...] = ()
    left: tuple[Tile, ...] = ()
    asks_least_change: bool = True

    @cached_property
    def pulled(self) -> tuple[Tile, ...]:
        """The tiles pulled: the first one must be played, the others go to the rack."""
        return () if self.river_index is None else self.situation.river[self.river_index :]

    @cached_property
    def own(self) -> Problem:
        """The tiles that the player can lay."""
        settled = (*self.played, *self.left)
        may = without(self.situation.rack, settled) if settled else self.situation.rack
        return problem((*self.pulled[:1], *self.played), may, self.situation.ruleset, self.objective)

    @property
    def tiles(self) -> Counter[Tile]:
        """All tiles that the player can lay."""
        return Counter(self.own.must) + Counter(self.own.may)

    def with_table(self, changed: frozenset[int]) -> Problem:
        """The same with the tiles of melds of the table."""
        own, table = self.own, self.situation.table
        must = count_tiles(table[place] for place in changed)
        for t, count in own.must.items():
            must[t] += count
        return Problem(must, own.may, own.ruleset, own.objective)

    @cached_property
    def everything(self) -> frozenset[int]:
        """The places of all melds of the table."""
        return frozenset(range(len(self.situation.table)))

    @cached_property
    def price(self) -> int:
        """What the tiles cost that go to the rack."""
        return self.own.cost(self.pulled[1:])

    def allows(self, melds: Melds, kept: frozenset[int]) -> bool:
        """Whether the rules allow new melds beside those of the old ones that are kept."""
        old = [meld for place, meld in enumerate(self.situation.table) if place in kept]
        ruleset = self.situation.ruleset
        play = Play(
            self.situation.table,
            tuple(as_proposed(meld, ruleset) for meld in (*old, *melds)),
            self.situation.rack,
            self.situation.has_melded,
            ruleset,
            river=self.situation.river,
            river_index=self.river_index,
            calls_rummikub=True,
        )
        return not judge(play).violations


def best(situation: Situation, objective: Objective, meter: Meter) -> BestTurn:
    """The best turn, by the River too."""
    found: list[tuple[Question, Candidate]] = []
    is_proven, below = True, None
    for question in questions(situation, objective, meter):
        try:
            for candidate in candidates(question, _limit(question, below)):
                found.append((question, candidate))
                below = candidate.cost + question.price + 1
        except OutOfBudget:
            is_proven = False
            found += [(question, candidate) for candidate in _quickly(question, _limit(question, below))]
            break
    if not found:
        return BestTurn(None, is_proven, is_proven)
    question, candidate = min(found, key=lambda turn: (turn[1].cost + turn[0].price, len(turn[1].changed)))
    return BestTurn(_turn(question, candidate), is_proven, is_proven and candidate.is_least_change)


def best_cost(situation: Situation, objective: Objective, meter: Meter) -> int | None:
    """What the tiles cost that are on the rack after the best turn; None if there is no turn.

    Raises:
        OutOfBudget: Nobody knows.
    """
    below = None
    for question in questions(situation, objective, meter):
        asked = replace(question, asks_least_change=False)
        for candidate in candidates(asked, _limit(question, below)):
            below = candidate.cost + question.price
    return below


def exists(situation: Situation, meter: Meter) -> bool:
    """Whether there is any turn.

    Raises:
        OutOfBudget: Nobody knows.
    """
    for question in questions(situation, Objective.MOST_TILES, meter):
        limit = _limit(question, None)
        if situation.has_melded and not is_guarded(situation.table, situation.ruleset):
            if _lays_any(question, limit):
                return True
        elif any(True for _ in chain(_quickly(question, limit), candidates(question, limit))):
            return True
    return False


def _lays_any(question: Question, limit: int) -> bool:
    """Whether there is any turn, where faces alone decide."""
    whole = question.with_table(question.everything)
    try:
        if question.pulled:
            return best_lay(whole, question.meter) is not None
        return lays_a_rack_tile(whole, question.meter)
    except OutOfBudget:
        if any(True for _ in _quickly(question, limit)):
            return True
        raise


def questions(situation: Situation, objective: Objective, meter: Meter) -> Iterator[Question]:
    """Without the River first, then from its newest tile on: the fewer tiles are pulled, the better.

    Where a joker is worth nothing, so may be a turn without the River (score_joker_penalty 0): it plays one at least.
    """
    yield Question(situation, objective, meter)
    if JOKER in situation.rack and not weight(JOKER, objective, situation.ruleset):
        yield Question(situation, objective, meter, played=(JOKER,))
    for river_index in reversed(range(len(situation.river))):
        yield Question(situation, objective, meter, river_index)


def _limit(question: Question, below: int | None) -> int:
    """What a turn must cost less than, to be one at all and better than the best one known."""
    nothing = question.own.cost(question.situation.rack)
    must_lay = question.river_index is not None or question.played
    any_turn = nothing + 1 if must_lay else nothing
    if below is None:
        return any_turn
    return 0 if question.played else min(any_turn, below - question.price)


def candidates(question: Question, limit: int) -> Iterator[Candidate]:
    """Turns, each better than the one before; the last one is the best."""
    situation = question.situation
    if situation.has_melded:
        yield from _on_the_table(question, (), limit)
    elif situation.ruleset.initial_meld_same_turn_table_play is InitialMeldSameTurnTablePlay.FORBIDDEN:
        yield from _beside_the_table(question, limit)
    else:
        yield from _after_an_opening(question, limit)


def _after_an_opening(question: Question, limit: int) -> Iterator[Candidate]:
    """Turns that begin with an initial meld and go on with the table; no better than if it need not be."""
    free = best_lay(question.with_table(question.everything), question.meter, limit)
    if free is None:
        return
    situation = question.situation
    guarded = situation.table if is_guarded(situation.table, situation.ruleset) else ()
    for opening in least_openings(question.tiles, guarded, question.own.ruleset, question.meter):
        for candidate in _on_the_table(question, opening, limit):
            yield replace(candidate, is_least_change=not candidate.changed)  # another one may change fewer
            limit = candidate.cost
        if limit <= free.cost:
            return


def _beside_the_table(question: Question, limit: int) -> Iterator[Candidate]:
    """The best initial meld where the table must be left alone."""
    found = best_opening(question.own, question.meter, limit)
    if found is None or not found.melds:
        return
    nothing: frozenset[int] = frozenset()
    situation = question.situation
    if not is_guarded(situation.table, situation.ruleset) or question.allows(found.melds, question.everything):
        yield Candidate(found.cost, nothing, found.melds)
    else:
        guarded = Guarded(situation.table, question.own, question.allows, question.meter, uses_table=False)
        for candidate in _rearranged(guarded, limit):
            yield candidate
            if candidate.cost <= found.cost:
                return


def _on_the_table(question: Question, opening: Melds, limit: int) -> Iterator[Candidate]:
    """The best turn of a player who may use the table, having laid some melds that must stay."""
    laid = count_tiles(opening)

    def rest(changed: frozenset[int]) -> Problem:
        whole = question.with_table(changed)
        if not opening:
            return whole
        own = question.own
        of_must = laid & Counter(own.must)
        return replace(whole, must=Counter(whole.must) - of_must, may=Counter(whole.may) - (laid - of_must))

    table, ruleset = question.situation.table, question.situation.ruleset
    guarded = None
    if is_guarded(table, ruleset):
        guarded = Guarded(table, rest(frozenset()), question.allows, question.meter, opening)
        if are_few(guarded) and not are_free(ruleset):  # then to lay them freely takes longer
            yield from _rearranged(guarded, limit)
            return
    found = best_lay(rest(question.everything), question.meter, limit)
    if found is None:
        return
    change = _change(question, rest, found)
    kept = question.everything - change.places
    melds = (*opening, *change.lay.melds)
    if guarded is None or question.allows(melds, kept):
        yield Candidate(found.cost, change.places, melds, change.is_least)
        return
    for candidate in _rearranged(guarded, limit):
        yield candidate
        if candidate.cost <= found.cost:  # no better than if the rules had not minded
            return


def _rearranged(guarded: Guarded, limit: int) -> Iterator[Candidate]:
    """The turns that the rules allow of those that cost less than a limit."""
    for other in rearrangements(guarded, limit):
        yield Candidate(other.cost, other.changed, other.melds, other.is_least_change)


@dataclass(frozen=True, slots=True)
class _Change:
    """The melds that change, what there is instead, whether there are no fewer."""

    places: frozenset[int]
    lay: Lay
    is_least: bool


def _change(question: Question, rest: Callable[[frozenset[int]], Problem], found: Lay) -> _Change:
    """Another way to lay as much as was found, with the fewest melds of the table changed; few, if that takes long."""
    allowed = question.meter.budget.change_nodes if question.asks_least_change else 0
    if allowed:
        trials = _Trials(question, rest, found)
        with suppress(OutOfBudget):
            return trials.of_fewest(question.meter.of(allowed))
        with suppress(OutOfBudget):
            return trials.of_few(allowed // TRIALS)
    return _Change(question.everything, found, is_least=False)


TRIALS: Final = 64
"""A trial of a turn that changes few melds may take this part of what may be spent on the fewest."""


@dataclass(frozen=True)
class _Trials:
    """Tries to lay as much as was found with fewer melds of the table changed.

    Attributes:
        question: What is asked.
        rest: The problem that is left if only some melds may change.
        found: What was found.
    """

    question: Question
    rest: Callable[[frozenset[int]], Problem]
    found: Lay

    def of_fewest(self, meter: Meter) -> _Change:
        """With the fewest; of equals those that are first in order."""
        everything, table = self.question.everything, self.question.situation.table
        changed = fewest_changed(self.rest(everything), table, self.found.cost, meter)
        lay = None if changed is None else self._lay(changed)
        if changed is None or lay is None:
            changed = fewest(len(everything), self._is_enough(meter), meter)
            lay = self._lay(changed)
        return _Change(changed, lay or self.found, is_least=True)

    def of_few(self, nodes: int) -> _Change:
        """With few, each trial taking so many nodes at most.

        Raises:
            OutOfBudget: The whole budget is spent.
        """

        def is_soon_enough(changed: frozenset[int]) -> bool:
            self.question.meter.count(0)
            with suppress(OutOfBudget):
                return self._is_enough(self.question.meter.of(nodes))(changed)
            return False

        changed = few(len(self.question.everything), is_soon_enough)
        return _Change(changed, self._lay(changed) or self.found, is_least=False)

    def _lay(self, changed: frozenset[int]) -> Lay | None:
        if changed == self.question.everything:
            return self.found
        return best_lay(self.rest(changed), self.question.meter, self.found.cost + 1)

    def _is_enough(self, meter: Meter) -> Callable[[frozenset[int]], bool]:
        """Whether it is enough that some melds may change."""
        known = {self.question.everything: True}

        def is_enough(changed: frozenset[int]) -> bool:
            if changed not in known:
                known[changed] = costs_less(self.rest(changed), meter, self.found.cost + 1)
            return known[changed]

        return is_enough


QUICKLY: Final = Budget(nodes=150)
"""What may be spent on a turn that is easy to find."""


def _quickly(question: Question, limit: int) -> Iterator[Candidate]:
    """Turns that are easy to find, each better than the one before."""
    for candidate in chain(_of_own_melds(question), _of_small_changes(question, limit)):
        if candidate.cost < limit and question.allows(candidate.melds, question.everything - candidate.changed):
            yield candidate
            limit = candidate.cost


def _of_own_melds(question: Question) -> Iterator[Candidate]:
    """Turns that lay a meld of the rack, or an initial meld, and no more; the best first, as rules take long to ask."""
    yield from sorted(_with_own_melds(question), key=lambda candidate: candidate.cost)


def _with_own_melds(question: Question) -> Iterator[Candidate]:
    own, ruleset = question.tiles, question.own.ruleset
    everything = question.own.cost(own.elements())
    choices: Iterator[Melds] = least_openings(own, (), ruleset, Meter(QUICKLY))
    if question.situation.has_melded:
        choices = ((meld,) for meld in islice(own_melds(own, ruleset), QUICKLY.nodes))
    with suppress(OutOfBudget):
        for melds in choices:
            laid = count_tiles(melds)
            if Counter(question.own.must) <= laid:
                cost = everything - question.own.cost(laid.elements())
                yield Candidate(cost, frozenset(), melds, is_least_change=False)


def _of_small_changes(question: Question, limit: int) -> Iterator[Candidate]:
    """Turns that change one meld at most."""
    meter = Meter(QUICKLY)
    places = [(), *((place,) for place in sorted(question.everything))] if question.situation.has_melded else []
    for changed in map(frozenset, places):
        found = None
        with suppress(OutOfBudget):
            found = best_lay(question.with_table(changed), meter, limit)
        if found:
            yield Candidate(found.cost, changed, found.melds, is_least_change=False)


def _turn(question: Question, candidate: Candidate) -> Turn:
    """A candidate as an answer."""
    table = question.situation.table
    untouched, melds = _untouched(table, candidate)
    after = (*[table[place] for place in untouched], *melds)
    came = count_tiles(melds)
    came.subtract(question.pulled[:1])
    kept = set(untouched)
    for place, meld in enumerate(table):
        if place not in kept:
            for t in meld.tiles:
                came[t] -= 1
    return Turn(after, in_order(came.elements()), untouched, question.river_index)


def _untouched(table: Melds, candidate: Candidate) -> tuple[tuple[int, ...], Melds]:
    """The places of the melds that stay, and the others; some that might change may happen to lie as before."""
    untouched = []
    new: dict[object, list[int]] = {}
    for number, meld in enumerate(candidate.melds):
        new.setdefault(_lies_as(meld), []).append(number)
    same = set()
    for place, old in enumerate(table):
        if place not in candidate.changed:
            untouched.append(place)
        elif numbers := new.get(_lies_as(old)):
            same.add(numbers.pop(0))
            untouched.append(place)
    return tuple(untouched), tuple([meld for number, meld in enumerate(candidate.melds) if number not in same])


def _lies_as(meld: Meld) -> object:
    """The identity of a meld; without jokers its tiles are enough, and quicker to compare."""
    if meld.joker_faces:
        return identity(meld)
    return meld.tiles if meld.kind is MeldKind.RUN else in_order(meld.tiles)
