"""Attributes of topics and groups, and how a request changes them.

A change is a map whose keys carry a sign: `+key` sets, `-key` removes. Stored keys have none.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from skyrocket.protocol.errors import SystemFailure

_LARGEST = (1 << 63) - 1
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,19}")


class Values(Protocol):
    """Which values an attribute takes."""

    def check(self, value: str) -> None: ...


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of these texts; their order is the one that RocketMQ's refusal names them in."""

    texts: tuple[str, ...]

    def check(self, value: str) -> None:
        if value not in self.texts:
            raise SystemFailure(f"value is not in set: [{', '.join(self.texts)}]")


@dataclass(frozen=True, slots=True)
class Range:
    """A whole number between two others."""

    smallest: int
    largest: int

    def check(self, value: str) -> None:
        if _WHOLE_NUMBER.fullmatch(value) is None:
            raise SystemFailure(f'For input string: "{value}"')
        if not self.smallest <= int(value) <= self.largest:
            raise SystemFailure(f"value is not in range({self.smallest}, {self.largest})")


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute; one that is not changeable is given when the topic is created, or never."""

    values: Values
    changeable: bool


TOPIC_ATTRIBUTES: Mapping[str, Attribute] = {
    "queue.type": Attribute(OneOf(("BatchCQ", "SimpleCQ")), changeable=False),
    "cleanup.policy": Attribute(OneOf(("DELETE", "COMPACTION")), changeable=False),
    "message.type": Attribute(
        OneOf(("UNSPECIFIED", "MIXED", "TRANSACTION", "PRIORITY", "FIFO", "DELAY", "NORMAL")), changeable=True
    ),
    "reserve.time": Attribute(Range(-1, _LARGEST), changeable=True),
}
GROUP_ATTRIBUTES: Mapping[str, Attribute] = {"priority.factor": Attribute(Range(0, 100), changeable=True)}


def parse_changes(text: str | None) -> dict[str, str]:
    """`+key=value,-key` → the map of changes; raises SystemFailure for anything else."""
    changes: dict[str, str] = {}
    for part in filter(None, (text or "").split(",")):
        key, equals, value = part.partition("=")
        if equals and "+" not in key:
            raise SystemFailure(f"add/alter attribute format is wrong: {key}")
        if not equals and "-" not in key:
            raise SystemFailure(f"delete attribute format is wrong: {key}")
        if key in changes:
            raise SystemFailure(f"key duplication: {key}")
        changes[key] = value
    return changes


def changed_attributes(
    known: Mapping[str, Attribute], current: Mapping[str, str] | None, changes: Mapping[str, str]
) -> dict[str, str]:
    """The attributes after a change; `current` is None while the topic or group is being created.

    Raises SystemFailure for a change that is not allowed; nothing is half done then.
    """
    result = dict(current or {})
    seen: set[str] = set()
    for signed, value in changes.items():
        sign, key = signed[:1], signed[1:]
        if not key or "+" in key or "-" in key:
            raise SystemFailure("kv string format wrong.")
        if key in seen:
            raise SystemFailure(f"alter duplication key. key: {key}")
        seen.add(key)
        _check_sign(sign, key, current)
        attribute = known.get(key)
        if attribute is None:
            raise SystemFailure(f"unsupported key: {key}")
        if current is not None and not attribute.changeable:
            raise SystemFailure(f"attempt to update an unchangeable attribute. key: {key}")
        if sign == "+":
            attribute.values.check(value)
            result[key] = value
        else:
            del result[key]
    return result


def _check_sign(sign: str, key: str, current: Mapping[str, str] | None) -> None:
    if current is None:
        if sign != "+":
            raise SystemFailure(f"only add attribute is supported while creating topic. key: {key}")
    elif sign == "-":
        if key not in current:
            raise SystemFailure(f"attempt to delete a nonexistent key: {key}")
    elif sign != "+":
        raise SystemFailure(f"wrong format key: {key}")
