"""Long lists, a page at a time: searched, sorted and cut here, so that browsers get what they show."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from skyrocket.console.api.values import BadInput

T = TypeVar("T")

LARGEST_PAGE: Final = 200


def page_of(
    rows: Sequence[T], sort: str, keys: Mapping[str, Callable[[T], Any]], page: int, size: int
) -> tuple[list[T], int]:
    """The rows of a page (1 is the first, what is beyond the last is the last), and how many there are in all.

    `-lag` sorts the largest first.
    """
    if not 1 <= size <= LARGEST_PAGE:
        raise BadInput("size is {size}: a page has 1 to {limit} rows", size=size, limit=LARGEST_PAGE)
    last = max(-(-len(rows) // size), 1)
    begin = (min(max(page, 1), last) - 1) * size
    return ordered(rows, sort, keys)[begin : begin + size], len(rows)


def ordered(rows: Sequence[T], sort: str, keys: Mapping[str, Callable[[T], Any]]) -> list[T]:
    """All rows by what is asked for; raises BadInput."""
    name = sort.removeprefix("-")
    if name not in keys:
        raise BadInput(
            "sort is {sort!r}: choose one of {names}, with - for the largest first", sort=sort, names=", ".join(keys)
        )
    return sorted(rows, key=keys[name], reverse=sort.startswith("-"))


def none_last(value: float | None) -> float:
    """What is not known counts as the least."""
    return float("-inf") if value is None else value
