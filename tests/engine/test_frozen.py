"""What quickly_made leaves as it was: arguments, defaults, equality, and that nothing can be changed."""

import copy
import inspect
import pickle
from dataclasses import FrozenInstanceError, dataclass, replace

import pytest

from engine.frozen import quickly_made


@dataclass(frozen=True, slots=True)
class Usual:
    """A value as dataclasses makes it."""

    seat: int
    name: str = "Ada"
    tiles: tuple[int, ...] = ()


@quickly_made
@dataclass(frozen=True, slots=True)
class Quick:
    """The same, made quickly."""

    seat: int
    name: str = "Ada"
    tiles: tuple[int, ...] = ()


def test_it_is_made_of_the_same_arguments() -> None:
    assert inspect.signature(Quick) == inspect.signature(Usual)
    assert repr(Quick(1)) == "Quick(seat=1, name='Ada', tiles=())"
    assert Quick(1, "Ben", (3,)) == Quick(tiles=(3,), name="Ben", seat=1)
    for arguments in ((), (1, "Ben", (), 4)):
        with pytest.raises(TypeError):
            Quick(*arguments)
    with pytest.raises(TypeError):
        Quick(seat=1, points=2)  # type: ignore[call-arg]


def test_it_cannot_be_changed() -> None:
    quick = Quick(1)
    with pytest.raises(FrozenInstanceError):
        quick.seat = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del quick.name
    assert quick == Quick(1)


def test_it_is_compared_hashed_replaced_and_copied_as_before() -> None:
    quick = Quick(1, "Ben", (3, 4))
    assert quick != Quick(1, "Ben", (3, 5))
    assert len({quick, Quick(1, "Ben", (3, 4)), Quick(2)}) == 2
    assert replace(quick, seat=2) == Quick(2, "Ben", (3, 4))
    assert copy.copy(quick) == pickle.loads(pickle.dumps(quick)) == quick  # noqa: S301 - our own
    match quick:
        case Quick(seat, name):
            assert (seat, name) == (1, "Ben")
