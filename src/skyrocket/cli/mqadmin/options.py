"""A command line of mqadmin, read as commons-cli reads it: `-t x`, `-tx`, `-t=x`, `--topic x`, `--topic=x`, `-topic x`.

Flags of one letter may stand together, `-mc x`. A word behind an option that takes a value is its value, also when it
begins with `-`, unless it could be an option itself. Of an option that is repeated the first value counts. Words that
belong to no option, and all behind `--`, are passed over: RocketMQ does so without a word, here they are remembered.
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
_OURS: Final = ("output", "context")
_NUMBER: Final = re.compile(r"[+-]?[0-9]+")
_LONGEST_NUMBER: Final = 20  # signs of one that fits
_LONGS: Final = frozenset(
    "MessageNumber amount beginTimestamp brokerId checkFrom endTime endTimestamp index interval level offset size "
    "startTime threshold timeoutMillis".split()
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
    ignored: tuple[str, ...] = ()  # words that belong to no option

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
        return number_of(f"--{name}", self.text(name, ""), most)


def number_of(what: str, text: str, most: int = MOST_LONG) -> int:
    """As Java reads one; raises ConfigError."""
    if not _NUMBER.fullmatch(text):
        raise ConfigError(f"{what} {text!r} is not a number")
    if len(text) > _LONGEST_NUMBER or not -most <= int(text) <= most:
        raise ConfigError(f"{what} {text} is beyond {most}, the largest that RocketMQ has room for")
    return int(text)


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
    for word in words:
        _check_text(word)
    options = options_of(command)
    values: dict[str, str] = {}
    ignored: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            ignored += rest
            break
        if not word.startswith("-") or word == "-":
            ignored.append(word)
            continue
        for option, value in _read(options, word):
            if option.is_flag:
                values[option.name] = "true"
                continue
            if value is None:
                if not rest or _is_option(options, rest[0]):
                    raise ConfigError(f"Missing argument for option: {option.short or option.long}")
                value = rest.pop(0)
            values.setdefault(option.name, value)
    if "help" not in values:
        _check_required(options, values)
    return Given(command, values, tuple(ignored))


def _check_text(word: str) -> None:
    try:
        word.encode()
    except UnicodeEncodeError:  # bytes that a shell passed on as they are
        raise ConfigError(f"{word!r} is not UTF-8: nothing that goes to a cluster may have other bytes") from None


def _read(options: Sequence[Option], word: str) -> list[tuple[Option, str | None]]:
    """The options that a word means, and the value that it brings to the last of them."""
    name, equals, value = word.lstrip("-").partition("=")
    found = _named(options, name.strip().replace(" ", "-"))
    if len(found) > 1:
        raise ConfigError(f"Ambiguous option: {word} (could be: {', '.join(each.long for each in found)})")
    if found:
        if found[0].is_flag and equals:
            raise ConfigError(f"--{found[0].long} takes no value")
        return [(found[0], value if equals else None)]
    if word.startswith("--"):
        raise ConfigError(f"Unrecognized option: {word}")
    return _run_together(options, word)


def _named(options: Sequence[Option], name: str) -> list[Option]:
    """By its name, or all whose long names begin so; those that RocketMQ does not have come last."""
    if not name:
        return []
    exact = [option for option in options if name in (option.short, option.long)]
    partly = [option for option in options if option.long.startswith(name)]
    return exact or [option for option in partly if option.long not in _OURS] or partly


def _run_together(options: Sequence[Option], word: str) -> list[tuple[Option, str | None]]:
    """`-topicOrders`, `-tOrders`, or flags of one letter, of which the last may be an option with its value."""
    for option in options:
        if word[1:].startswith(option.long) and not option.is_flag:
            return [(option, word[1 + len(option.long) :])]
    by_letter = {option.short: option for option in options if len(option.short) == 1}
    found: list[tuple[Option, str | None]] = []
    for at, letter in enumerate(word[1:], 2):
        if letter not in by_letter:
            break
        option = by_letter[letter]
        if not option.is_flag:
            return [*found, (option, word[at:].removeprefix("=") or None)]
        found.append((option, None))
    else:
        return found
    raise ConfigError(f"Unrecognized option: {word}")


def _is_option(options: Sequence[Option], word: str) -> bool:
    """Whether a word behind an option is another one: `-5` and `-message.type` are values where none begins so."""
    if not word.startswith("-") or word in ("-", "--"):
        return word == "--"
    name = word.lstrip("-").partition("=")[0]
    beginnings = tuple(text for option in options for text in (option.short, option.long) if text)
    return bool(_named(options, name)) or (not word.startswith("--") and name.startswith(beginnings))


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
