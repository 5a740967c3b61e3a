"""Changes of what somebody else may have changed meanwhile: what is named changes, and nothing else."""

from dataclasses import fields, replace
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")


def patched(now: T, before: T, after: T) -> T:
    """What is there now, with the fields in which `after` differs from `before`."""
    changed = {each.name: getattr(after, each.name) for each in fields(after)}
    return replace(now, **{name: value for name, value in changed.items() if value != getattr(before, name)})
