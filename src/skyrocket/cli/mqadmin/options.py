"""A command line of mqadmin, read as commons-cli reads it: `-t x`, `-tx`, `-t=x`, `--topic x`, `--topic=x`, `-topic x`.

A word behind an option that takes a value is its value, also when it begins with `-` and a digit.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from typing import Final

from skyrocket.cli.mqadmin.commands import COMMANDS
from skyrocket.cli.program.numbers import MOST_INT, MOST_LONG
from skyrocket.errors import ConfigError

_SPEC: Final = re.compile(r"(?:-(\w+) )?--([\w-]+)([!|?]?)")
_COMMON: Final = "-n --namesrvAddr  -h --help?  --output  --context"
_NEGATIVE: Final = re.compile(r"-\d+")
_LONGS: Final = frozenset(
    "MessageNumber amount beginTimestamp brokerId checkFrom endTimestamp index interval level offset size threshold "
    "timeoutMillis".split()
)  # the others are ints


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a command."""

    short: str
    long: str
    mark: str = ""

    @property
    def is_flag(self) -> bool:
        return self.mark == "?"

    @property
    def name(self) -> str:
        """The key of its value."""
        return self.long


@dataclass(frozen=True, slots=True)
class Given:
    """What was typed, by long names."""

    command: str
    values: Mapping[str, str] = field(default_factory=dict)

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def __getitem__(self, name: str) -> str:
        return self.values[name].strip()

    def get(self, name: str) -> str | None:
        """None without it."""
        return self.values[name].strip() if name in self.values else None

    def text(self, name: str, default: str) -> str:
        return self.values.get(name, default).strip()

    def is_true(self, name: str, default: bool = False) -> bool:
        """Java's Boolean.parseBoolean."""
        return default if name not in self.values else self[name].lower() == "true"

    def number(self, name: str, default: int | None = None) -> int:
        """Raises ConfigError, also for what Java has no room for: brokers would take it for nothing, or keep it."""
        if name not in self.values and default is not None:
            return default
        most = MOST_LONG if name in _LONGS else MOST_INT
        try:
            number = int(self[name])
        except (KeyError, ValueError):
            raise ConfigError(f"--{name} {self.values.get(name, '')!r} is not a number") from None
        if not -most <= number <= most:
            raise ConfigError(f"--{name} {number} is beyond {most}, the largest that RocketMQ has room for")
        return number


@cache
def options_of(command: str) -> tuple[Option, ...]:
    """Its own options, then those that all have."""
    own = [Option(short, long, mark) for short, long, mark in _SPEC.findall(COMMANDS[command].options)]
    taken = {option.short for option in own} | {option.long for option in own}
    common = [Option(short, long, mark) for short, long, mark in _SPEC.findall(_COMMON)]
    return (*own, *(each for each in common if each.long not in taken))


def command_named(text: str) -> str:
    """In any letter case, as RocketMQ has it; raises ConfigError with its words."""
    by_lower = {name.lower(): name for name in COMMANDS}
    if text.lower() not in by_lower:
        from difflib import get_close_matches

        near = get_close_matches(text.lower(), by_lower, n=1)
        hint = f" Did you mean {by_lower[near[0]]}?" if near else ""
        raise ConfigError(f"The sub command {text} not exist.{hint}")
    return by_lower[text.lower()]


def parse(command: str, words: Sequence[str]) -> Given:
    """Raises ConfigError."""
    options = options_of(command)
    values: dict[str, str] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        option, value = _option(options, word)
        if option.is_flag:
            if value is not None:
                raise ConfigError(f"--{option.long} takes no value")
            values[option.name] = "true"
            continue
        if value is None:
            if not rest or (rest[0].startswith("-") and len(rest[0]) > 1 and not _NEGATIVE.fullmatch(rest[0])):
                raise ConfigError(f"Missing argument for option: {option.short or option.long}")
            value = rest.pop(0)
        values[option.name] = value
    if "help" not in values:
        _check_required(options, values)
    return Given(command, values)


def _option(options: Sequence[Option], word: str) -> tuple[Option, str | None]:
    """The option that a word means, and the value that it brings."""
    if not word.startswith("-") or word == "-":
        raise ConfigError(f"Unrecognized argument: {word}")
    name, equals, value = word.lstrip("-").partition("=")
    name = name.strip().replace(" ", "-")
    for option in options:
        if name in (option.short, option.long):
            return option, value if equals else None
    partly = [option for option in options if option.long.startswith(name)]
    if word.startswith("--") and len(partly) == 1:
        return partly[0], value if equals else None
    if not word.startswith("--"):
        for option in options:
            if option.short and not option.is_flag and word[1:].startswith(option.short):
                return option, word[1 + len(option.short) :]
    raise ConfigError(f"Unrecognized option: {word}")


def _check_required(options: Sequence[Option], values: Mapping[str, str]) -> None:
    missing = [option.short or option.long for option in options if option.mark == "!" and option.name not in values]
    if missing:
        raise ConfigError(f"Missing required option{'s' if len(missing) > 1 else ''}: {', '.join(missing)}")
    for is_group, members in groupby(options, key=lambda option: option.mark == "|"):
        if not is_group:
            continue
        either = list(members)
        chosen = [option for option in either if option.name in values]
        if not chosen:
            raise ConfigError(f"Missing required option: [{', '.join(f'-{option.short}' for option in either)}]")
        if len(chosen) > 1:
            one, other = chosen[:2]
            raise ConfigError(
                f"The option '{other.short}' was specified but an option from this group has already been selected: "
                f"'{one.short}'"
            )


def usage(command: str) -> str:
    """How to call it."""
    lines = [f"usage: mqadmin {command} [options]", f"  {COMMANDS[command].line}", ""]
    for option in options_of(command):
        short = f"-{option.short}," if option.short else ""
        value = "" if option.is_flag else " <arg>"
        mark = {"!": "  (required)", "|": "  (one of these is required)"}.get(option.mark, "")
        lines.append(f" {short:4}--{option.long}{value}{mark}")
    return "\n".join(lines) + "\n"
