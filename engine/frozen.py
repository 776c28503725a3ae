"""Values that never change, made quickly."""

from dataclasses import fields
from functools import wraps
from typing import Any, TypeVar, cast

T = TypeVar("T")


def quickly_made(value: type[T]) -> type[T]:
    """Gives a frozen dataclass with slots a constructor that fills them directly.

    It takes the same arguments. That of `dataclasses` asks object.__setattr__ for each field by its name, which takes
    three times as long: too long where a call makes dozens of values.

    Args:
        value: All of its fields are arguments, and their defaults are values.
    """
    of_any = cast("Any", value)
    names = [field.name for field in fields(of_any)]
    known = {f"fill_{name}": vars(value)[name].__set__ for name in names}
    filling = "\n".join(f"    fill_{name}(self, {name})" for name in names)
    exec(f"def quick(self, {', '.join(names)}):\n{filling}", known)  # noqa: S102 - as dataclasses does, of names alone
    quick = known["quick"]
    quick.__defaults__ = of_any.__init__.__defaults__
    of_any.__init__ = wraps(of_any.__init__)(quick)
    return value
