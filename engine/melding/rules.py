"""The rules of a play, one small function per rule, in the order in which violations are reported.

A play is the proposed table, not a list of moves, so illegal intermediate states do not exist (R44). `TURN_RULES` lists
the rules, and `judge` applies them.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from engine.effort import TooComplexError
from engine.matching import unmatched
from engine.melding.exchange import Exchange
from engine.melding.initial_meld import from_left_to_right, has_required_kind, initial_points, reaches, total_points
from engine.melding.manipulation import melds_only_grow, no_meld_is_dissolved
from engine.melding.melds import Meld, NotAMeld, joker_points
from engine.melding.play import STEPS, BasePlay
from engine.melding.retrieval import limits_retrieval, retrieval_reasons
from engine.melding.ruleset import InitialMeldCount, InitialMeldJoker, Manipulation, Ruleset, WinCall
from engine.melding.variants import (
    CONTRACTS,
    the_contract_is_kept,
    the_drawn_tile_stays,
    the_key_is_played,
    the_plunder_stays,
    the_river_has_the_tile,
    the_winner_calls,
)
from engine.tiles import (
    COLORS,
    JOKER,
    JOKERS,
    LAST_TILE,
    PLACES_OF,
    Tile,
    in_order,
    naturals,
    value_of,
)
from engine.violations import Reason, Violation


@dataclass(frozen=True, slots=True)
class Judgement:
    """The result of judging a play.

    Attributes:
        violations: Every breach, in the order of TURN_RULES; empty when the play is legal.
        table: The proposed melds that are melds: the new table when the play is legal.
        tiles_played: The tiles that leave the rack, in ascending order.
        rack_left: The tiles that stay on it, in ascending order.
        points: The value of the tiles played. A joker counts as the tile that it stands for (R20); if the new melds
            have more jokers than were played, those with the highest values count (tiles have no identity).
    """

    violations: tuple[Violation, ...]
    table: tuple[Meld, ...]
    tiles_played: tuple[Tile, ...]
    rack_left: tuple[Tile, ...]
    points: int


def judge(play: BasePlay, groups: "Iterable[RuleGroup] | None" = None, steps: int = STEPS) -> Judgement:
    """Returns the judgement of a play.

    Args:
        play: The play.
        groups: The rules of its ruleset (groups_of), if the caller has them; otherwise all of TURN_RULES.
        steps: See violations_of.
    """
    return Judgement(
        violations=violations_of(play, TURN_RULES if groups is None else groups, steps),
        table=play.melds,
        tiles_played=play.played,
        rack_left=play.rack_left,
        points=points_of(play),
    )


def violations_of(play: BasePlay, groups: "Iterable[RuleGroup]", steps: int = STEPS) -> tuple[Violation, ...]:
    """Returns every violation of some rules.

    Args:
        play: The play.
        groups: The rules.
        steps: How many steps the rules may take. If they need more, TURN_TOO_COMPLEX is among the violations; with
            fewer than STEPS, that says nothing about the turn, and a copy of the play may be judged with all steps.
    """
    play.reset_effort(steps)
    found: list[Violation] = []
    for group in groups:
        if group.is_clearly_kept is None or not group.is_clearly_kept(play):
            found += _breaches(play, group, found)
    return tuple(found)


def _breaches(play: BasePlay, group: "RuleGroup", found: Sequence[Violation]) -> list[Violation]:
    """Returns the violations of a group. If a search runs out of steps: TURN_TOO_COMPLEX, once for all groups."""
    try:
        return [violation for rule in group.rules for violation in rule(play)]
    except TooComplexError:
        is_known = any(violation.reason is Reason.TURN_TOO_COMPLEX for violation in found)
        return [] if is_known else [Violation(Reason.TURN_TOO_COMPLEX, play.subject)]


def points_of(play: BasePlay) -> int:
    """Returns the value of the tiles played (Judgement.points)."""
    played = play.played
    if JOKERS.isdisjoint(played):
        return natural_points(played)
    jokers = sorted((points for meld in play.new_melds for points in joker_points(meld)), reverse=True)
    return natural_points(played) + sum(jokers[: sum(PLACES_OF.get(t, 0) for t in played)])


_VALUES: Final = [value_of(Tile(t)) if Tile(t) in naturals(len(COLORS)) else 0 for t in range(LAST_TILE + 1)]


def natural_points(tiles: Iterable[Tile]) -> int:
    """Returns the value of the numbered tiles among some."""
    return sum(map(_VALUES.__getitem__, tiles))


def no_joker_leaves_the_table(play: Exchange) -> Iterator[Violation]:
    """R45, R49: a joker of the table never returns to a rack."""
    jokers = tuple([t for t in play.missing if t in JOKERS])
    if jokers:
        yield Violation(Reason.JOKER_TO_RACK, play.subject, jokers)


def no_tile_leaves_the_table(play: Exchange) -> Iterator[Violation]:
    """R45: every tile that was on the table is on it at the end."""
    numbered = tuple([t for t in play.missing if t not in JOKERS])
    if numbered:
        yield Violation(Reason.TABLE_TILE_MISSING, play.subject, numbered)


def no_tile_is_used_twice(play: Exchange) -> Iterator[Violation]:
    """R1, R17: a tile of the rack is played once, and no face is on the table more often than in the tile set."""
    if play.duplicated:
        yield Violation(Reason.TILE_DUPLICATED, play.subject, play.duplicated)


def tiles_come_from_the_rack(play: Exchange) -> Iterator[Violation]:
    """R32: added tiles come from the player's rack, whether or not the pool or another rack has them."""
    duplicated = set(play.duplicated)
    foreign = tuple([t for t in play.unowned if t not in duplicated])
    if foreign:
        yield Violation(Reason.TILE_NOT_IN_RACK, play.subject, foreign)


def tiles_are_of_the_game(play: Exchange) -> Iterator[Violation]:
    """R1: added tiles are in the tile set. Melds with others are none, so plays of melds need no such rule."""
    unknown = tuple([t for t in in_order(play.added.elements()) if not play.ruleset.copies_of(t)])
    if unknown:
        yield Violation(Reason.TILE_UNKNOWN, play.subject, unknown)


def has_own_tiles_only(play: Exchange) -> bool:
    """Returns whether the player has every added tile. A joker of a game without jokers is owned by no player."""
    return not play.added - play.playable - play.plunder


def a_rack_tile_is_played(play: Exchange) -> Iterator[Violation]:
    """R38: at least one tile of the rack goes to the table."""
    if not play.played:
        yield Violation(Reason.NO_RACK_TILE_PLAYED, play.subject)


def every_meld_is_one(play: BasePlay) -> Iterator[Violation]:
    """R11 to R20: every proposed meld is a group or a run."""
    for place, reading in play.not_melds:
        yield from meld_violations(reading, f"{play.subject}[{place}]")


def meld_violations(reading: NotAMeld, subject: str) -> Iterator[Violation]:
    """Yields a violation for each reason why tiles form no meld."""
    for reason in reading.reasons:
        yield Violation(reason, subject, reading.tiles, suggested_order=reading.suggested_order)


def jokers_stay_until_the_initial_meld(play: BasePlay) -> Iterator[Violation]:
    """R37: no joker is retrieved before the player's initial meld."""
    if play.changed_melds and not play.may_use_table:
        for meld in play.changed_melds:
            if _joker_left(meld, play):
                yield Violation(Reason.JOKER_RETRIEVAL_BEFORE_INITIAL_MELD, play.subject, meld.tiles)


def the_table_stays_until_the_initial_meld(play: BasePlay) -> Iterator[Violation]:
    """R33, R34: the melds of the table do not change before the initial meld or, in most rulesets, in its turn."""
    if play.changed_melds and not play.may_use_table:
        for meld in play.changed_melds:
            if not _joker_left(meld, play):
                yield Violation(Reason.INITIAL_MELD_TABLE_MODIFIED, play.subject, meld.tiles)


def _joker_left(meld: Meld, play: BasePlay) -> bool:
    """Returns whether a changed meld lost a joker: not all are left in new melds (docs/rules.md, Retrieval)."""
    return any(_remaining(faces, meld, play) < meld.joker_faces.count(faces) for faces in meld.joker_faces)


def _remaining(faces: tuple[Tile, ...], old: Meld, play: BasePlay) -> int:
    """Returns how many jokers keep a role in new melds of the same kind that share two tiles with the old meld."""
    return sum(
        set(new_faces) <= set(faces)
        for new in play.new_melds
        if new.kind is old.kind and (Counter(old.tiles) & Counter(new.tiles)).total() > 1
        for new_faces in new.joker_faces
    )


def the_initial_meld_has_no_joker(play: BasePlay) -> Iterator[Violation]:
    """R30, initial_meld_joker FORBIDDEN: the initial meld has no joker."""
    if not play.has_melded and play.ruleset.initial_meld_joker is InitialMeldJoker.FORBIDDEN:
        with_joker = tuple(t for meld in _checked_for_jokers(play) if JOKER in meld.tiles for t in meld.tiles)
        if with_joker:
            yield Violation(Reason.INITIAL_MELD_HAS_JOKER, play.subject, with_joker)


def _checked_for_jokers(play: BasePlay) -> tuple[Meld, ...]:
    """Returns the initial meld; if it is empty and the threshold is 0, the new melds that jokers may rule out."""
    if play.initial_meld or not _is_initial(play) or not reaches(0, play.ruleset):
        return play.initial_meld
    return from_left_to_right(play.new_melds, play.tiles_played)


def the_initial_meld_is_one_meld(play: BasePlay) -> Iterator[Violation]:
    """R31, initial_meld_count SINGLE_MELD: the initial meld is a single meld."""
    single = play.ruleset.initial_meld_count is InitialMeldCount.SINGLE_MELD
    if not play.has_melded and single and len(play.initial_meld) > 1:
        yield Violation(Reason.INITIAL_MELD_SINGLE_MELD_REQUIRED, play.subject)


def the_initial_meld_has_the_kind(play: BasePlay) -> Iterator[Violation]:
    """initial_meld_required_kind: the initial meld has a meld of that kind. Skipped if the initial meld is unknown."""
    if _is_initial(play) and not has_required_kind(play.initial_meld, play.ruleset):
        yield Violation(Reason.INITIAL_MELD_KIND_REQUIRED, play.subject)


def the_initial_meld_reaches_the_threshold(play: BasePlay) -> Iterator[Violation]:
    """R29, R30, initial_meld_threshold. Skipped if the total is unknown: invalid melds, or tiles not from the rack."""
    if not _is_initial(play):
        return
    ruleset, melds = play.ruleset, play.initial_meld
    total, threshold = total_points(melds, ruleset), ruleset.initial_meld_threshold
    if not reaches(total, ruleset):
        metadata = (("total", total), ("threshold", threshold))
        yield Violation(Reason.INITIAL_MELD_BELOW_THRESHOLD, play.subject, metadata=metadata)
    elif ruleset.initial_meld_count is InitialMeldCount.ONE_MELD_REACHES_THRESHOLD:
        best = max((initial_points(meld, ruleset) for meld in melds), default=0)
        if not reaches(best, ruleset):
            metadata = (("best", best), ("threshold", threshold))
            yield Violation(Reason.INITIAL_MELD_NO_MELD_REACHES_THRESHOLD, play.subject, metadata=metadata)


def _is_initial(play: BasePlay) -> bool:
    """Returns whether a play is an initial meld of valid melds and the player's own tiles."""
    return not play.has_melded and bool(play.played) and not play.unowned and play.is_all_melds


def jokers_stand_for_tiles_to_be_had(play: BasePlay) -> Iterator[Violation]:
    """jokers_beyond_physical: no joker is laid for a face whose copies were all on the table, unless it stood for it.

    Once the player has melded, unchanged melds are checked too, as tiles have no identity.
    """
    if play.ruleset.jokers_beyond_physical:
        return
    laid, before = play.new_melds, play.changed_melds
    if play.has_melded:
        laid, before = sum(play.kept_and_new, ()), play.table_before
    exhausted = [(meld, set(faces)) for meld in laid for faces in _of_exhausted_faces(meld, play)]
    stood_for = [set(faces) for meld in before for faces in meld.joker_faces]
    for place in unmatched([[old for old, was in enumerate(stood_for) if now <= was] for _, now in exhausted]):
        yield Violation(Reason.JOKER_FACE_EXHAUSTED, play.subject, exhausted[place][0].tiles)


def _of_exhausted_faces(meld: Meld, play: BasePlay) -> tuple[tuple[Tile, ...], ...]:
    """Returns the faces of each joker of a meld for which no copy is left. Jokers of a group share their faces."""
    copies = play.ruleset.geometry_copies
    left = {face for faces in meld.joker_faces for face in faces if play.tiles_before[face] < copies}
    found = []
    for faces in meld.joker_faces:
        free = next((face for face in faces if face in left), None)
        if free is None:
            found.append(faces)
        else:
            left.remove(free)
    return tuple(found)


def jokers_are_retrieved_by_the_rules(play: BasePlay) -> Iterator[Violation]:
    """R46 to R50, R53: joker_retrieval_mode and the other options of retrieval. Skipped if the play is not settled."""
    if play.is_settled and play.may_use_table:
        tiles = tuple(t for meld in play.changed_melds if JOKER in meld.tiles for t in meld.tiles)
        for reason in play.least_wrong(retrieval_reasons) if tiles else ():
            yield Violation(reason, play.subject, tiles)


def _always(_ruleset: Ruleset) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class RuleGroup:
    """Rules that are applied together.

    Attributes:
        rules: The rules in the order of reporting.
        is_clearly_kept: A cheap check, if there is one: true for most plays that keep the rules, and false for every
            play that breaks one.
        applies_to: Returns whether a play can break the rules under a ruleset.
    """

    rules: tuple[Callable[[BasePlay], Iterator[Violation]], ...]
    is_clearly_kept: Callable[[BasePlay], bool] | None = None
    applies_to: Callable[[Ruleset], bool] = _always


TURN_RULES: Final = (
    RuleGroup((no_tile_is_used_twice, tiles_come_from_the_rack), is_clearly_kept=lambda play: not play.unowned),
    RuleGroup((no_joker_leaves_the_table, no_tile_leaves_the_table), is_clearly_kept=lambda play: not play.missing),
    RuleGroup((a_rack_tile_is_played,), is_clearly_kept=lambda play: bool(play.played)),
    RuleGroup((every_meld_is_one,), is_clearly_kept=lambda play: not play.not_melds),
    RuleGroup(
        (
            jokers_stay_until_the_initial_meld,
            the_table_stays_until_the_initial_meld,
            the_initial_meld_has_no_joker,
            the_initial_meld_is_one_meld,
            the_initial_meld_has_the_kind,
            the_initial_meld_reaches_the_threshold,
        ),
        is_clearly_kept=lambda play: play.has_melded,
    ),
    RuleGroup((jokers_stand_for_tiles_to_be_had,), applies_to=lambda ruleset: not ruleset.jokers_beyond_physical),
    RuleGroup((melds_only_grow,), applies_to=lambda ruleset: ruleset.manipulation is Manipulation.OFF),
    RuleGroup((no_meld_is_dissolved,), applies_to=lambda ruleset: ruleset.manipulation is Manipulation.PRIMITIVES_ONLY),
    RuleGroup((jokers_are_retrieved_by_the_rules,), applies_to=limits_retrieval),
    RuleGroup((the_drawn_tile_stays,), is_clearly_kept=lambda play: play.drawn is None),
    RuleGroup(
        (the_river_has_the_tile, the_key_is_played, the_plunder_stays),
        is_clearly_kept=lambda play: play.river_index is None,
    ),
    RuleGroup((the_contract_is_kept,), applies_to=lambda ruleset: ruleset.contract in CONTRACTS),
    RuleGroup((the_winner_calls,), applies_to=lambda ruleset: ruleset.win_call is WinCall.REQUIRED),
)
"""All rules, in the order in which violations are reported."""


def groups_of(ruleset: Ruleset) -> tuple[RuleGroup, ...]:
    """Returns the groups of TURN_RULES that apply to a ruleset."""
    return tuple(group for group in TURN_RULES if group.applies_to(ruleset))
