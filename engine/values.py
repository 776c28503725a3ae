"""Values: what is made anew in every turn, and never changed."""

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def value(cls: type[T]) -> type[T]:
    """A dataclass with slots that is frozen for type checkers, who refuse whatever would change it.

    One that is frozen at run time too takes five times as long to make, and a turn makes some thirty values.
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)
