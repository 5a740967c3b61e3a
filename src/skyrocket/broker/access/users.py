"""Users of ACL 2.0, who sign with their password."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

SUPER: Final = "Super"
NORMAL: Final = "Normal"
ENABLED: Final = "enable"
DISABLED: Final = "disable"


@dataclass(frozen=True, slots=True)
class User:
    """A super user may do everything; all others what their policies say."""

    name: str
    password: str = field(repr=False)
    type: str = NORMAL
    status: str = ENABLED

    @property
    def is_super(self) -> bool:
        return self.type == SUPER

    @property
    def is_enabled(self) -> bool:
        return self.status == ENABLED


def named(text: str | None, known: Mapping[str, str]) -> str | None:
    """A word as we write it, whatever the letter case; None for one that is not known, as in RocketMQ."""
    return None if text is None else known.get(text.lower())


USER_TYPES: Final = {name.lower(): name for name in (SUPER, NORMAL)}
USER_STATUSES: Final = {name.lower(): name for name in (ENABLED, DISABLED)}
