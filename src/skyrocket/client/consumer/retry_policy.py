"""How a handler's failures are treated: how often a message comes again, how soon, and after which exceptions.

    @consumer.on("Orders", retry=RetryPolicy(delays=("1s", "10s", "1m"), retries=5, dead_letters=(ValueError,)))

Brokers know 18 delays, their levels, so a delay is one of them. In order (`orderly=True`) a delay is how long the queue
rests before the same message, at most 30 s.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from skyrocket.client.core.errors import WrongUse

# RocketMQ's, unless its brokers say otherwise (messageDelayLevel).
LEVELS: Final = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h".split()
_UNITS: Final = {"s": 1, "m": 60, "h": 3600}
_SECONDS: Final = {int(text[:-1]) * _UNITS[text[-1]]: level for level, text in enumerate(LEVELS, 1)}
FIRST_RETRY_LEVEL: Final = 3

Delay = str | float | timedelta


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """What follows when a handler raises; without one the consumer's settings and the brokers' delays count.

    Attributes:
        delays: before each retry, the last one for all further ones; empty: the broker's, which grow from 10 s to 2 h.
        retries: how often a message comes again before it goes to the dead letters; None: as the consumer's settings.
        retry: only these exceptions; any other goes to the dead letters at once.
        dead_letters: these exceptions go to the dead letters at once.
    """

    delays: Sequence[Delay] = ()
    retries: int | None = None
    retry: tuple[type[BaseException], ...] = (Exception,)
    dead_letters: tuple[type[BaseException], ...] = ()
    levels: tuple[int, ...] = field(init=False, repr=False, default=())

    def __post_init__(self) -> None:
        if self.retries is not None and (not isinstance(self.retries, int) or not 0 <= self.retries <= 65535):
            raise WrongUse(f"retries={self.retries!r}: give a whole number, 0 for no retry at all")
        given = (self.delays,) if isinstance(self.delays, str | int | float | timedelta) else self.delays
        object.__setattr__(self, "levels", tuple(level_of(each) for each in given))
        for name in ("retry", "dead_letters"):
            kinds = getattr(self, name)
            if isinstance(kinds, type):
                object.__setattr__(self, name, kinds := (kinds,))
            for kind in kinds:
                if not isinstance(kind, type) or not issubclass(kind, BaseException):
                    raise WrongUse(f"{name}={kinds!r}: give exception classes, as {name}=(OSError, TimeoutError)")

    def level(self, retries_before: int) -> int:
        """The level of the next retry, 0 for the broker's choice."""
        return self.levels[min(retries_before, len(self.levels) - 1)] if self.levels else 0

    def is_hopeless(self, error: BaseException) -> bool:
        """Whether it goes to the dead letters without another try."""
        return isinstance(error, self.dead_letters) or not isinstance(error, self.retry)


def level_of(delay: Delay) -> int:
    """`"10s"`, seconds or a timedelta as a delay level; raises WrongUse for a time that is none."""
    if isinstance(delay, timedelta):
        seconds = delay.total_seconds()
    elif isinstance(delay, str):
        text = delay.strip()
        number, unit = text[:-1], _UNITS.get(text[-1:], 0)
        seconds = float(number) * unit if number.isdigit() else -1.0
    else:
        seconds = float(delay)
    level = _SECONDS.get(round(seconds)) if seconds == round(seconds) else None
    if level is None:
        raise WrongUse(f"a retry cannot be delayed by {delay!r}: brokers know {' '.join(LEVELS)}; choose one of them")
    return level


def delay_text(level: int, retries_before: int) -> str:
    """How long a retry of this level waits, as brokers have it unless they were told otherwise."""
    level = min(level or FIRST_RETRY_LEVEL + retries_before, len(LEVELS))
    return LEVELS[level - 1]


def delay_seconds(level: int) -> float:
    """A level's time."""
    text = LEVELS[min(level, len(LEVELS)) - 1]
    return float(int(text[:-1]) * _UNITS[text[-1]])
