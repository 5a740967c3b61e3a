"""What operators do not want to hear of for a while: a whole rule, or one name of it."""

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

WHOLE_RULE = "*"


@dataclass(frozen=True, slots=True)
class Mute:
    """Nothing is told of a rule's alerts about names that fit the pattern, until then."""

    rule: str
    name: str  # a pattern; `*` is the whole rule
    until_ms: int
    by: str  # who wanted it

    def covers(self, rule: str, name: str) -> bool:
        return self.rule == rule and fnmatchcase(name, self.name)


def muted_until_ms(mutes: Iterable[Mute], rule: str, name: str, now_ms: int) -> int:
    """When the last of them that cover it ends; 0 if none does, or all are over."""
    return max((each.until_ms for each in mutes if each.covers(rule, name) and each.until_ms > now_ms), default=0)


def with_mute(mutes: Iterable[Mute], wanted: Mute, now_ms: int) -> tuple[Mute, ...]:
    """In place of the one for the same rule and pattern; those that are over go, the wanted one among them."""
    others = [each for each in mutes if (each.rule, each.name) != (wanted.rule, wanted.name)]
    return tuple(each for each in (*others, wanted) if each.until_ms > now_ms)
