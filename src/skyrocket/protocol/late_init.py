"""Dataclasses that are cheap to declare: `__init__` is compiled when the first of them is made.

The protocol declares some two hundred and fifty classes, and a program uses a few of them. Compiling an `__init__` for
each took a third of the time in which a client is imported.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

C = TypeVar("C", bound=type[Any])


def late_init_dataclass(*, kw_only: bool = False) -> Callable[[C], C]:
    """A dataclass with slots; what it compares and shows comes from its base class."""

    def decorate(cls: C) -> C:
        made: Any = dataclass(slots=True, init=False, eq=False, repr=False, kw_only=kw_only)(cls)

        def late_init(self: Any, *values: Any, **named: Any) -> None:
            # A subclass without fields of its own: its `__init__` is the one that `made` would have got.
            twin = type(made.__name__, (made,), {"__slots__": (), "__module__": made.__module__, "__doc__": ""})
            made.__init__ = vars(dataclass(eq=False, repr=False)(twin))["__init__"]
            made.__init__(self, *values, **named)

        made.__init__ = late_init
        result: C = made
        return result

    return decorate
