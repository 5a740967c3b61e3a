"""Options of our Spark formats: read once, typed, checked; the errors name the option and what it should have been.

Spark hands options over as text with lower-case keys, so names are compared without case and shown as documented. A
name that no option has is an error that names the nearest: a misspelt option must not be ignored in silence.
"""

import difflib
import json
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, TypeVar

from skyrocket.errors import ConfigError

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)")
_UNIT_MS: Final = {
    **dict.fromkeys(("", "ms", "millisecond", "milliseconds"), 1),
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1000),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000),
    **dict.fromkeys(("d", "day", "days"), 86_400_000),
}
_TRUE: Final = {"true", "yes", "on", "1"}
_FALSE: Final = {"false", "no", "off", "0"}
# Spark adds these by itself.
_OF_SPARK: Final = {"path", "checkpointlocation", "mergeschema", "queryname"}

D = TypeVar("D")


class OptionError(ConfigError):
    """An option is missing, unknown, or has a value that cannot be."""


class Options:
    """The options given to one format; `known` are the documented names."""

    def __init__(self, given: Mapping[str, str], known: Collection[str], format_name: str) -> None:
        self._format = format_name
        self._known = {name.lower(): name for name in known}
        # Spark gives a mapping whose look-up ignores case, but a user's own dict does not.
        self._given = {name.lower(): str(value) for name, value in dict(given).items()}
        for name in dict(given):
            if name.lower() not in self._known and name.lower() not in _OF_SPARK:
                raise OptionError(self._unknown(name))

    def _unknown(self, name: str) -> str:
        known = self._known.values()
        advice = f'did you mean "{meant}"?' if (meant := nearest(name, known)) else f"it has: {', '.join(known)}"
        return f'format "{self._format}" has no option "{name}"; {advice}'

    def error(self, name: str, problem: str) -> OptionError:
        """An error about one option, to be raised."""
        return OptionError(f'option "{name}" of format "{self._format}" {problem}')

    def has(self, name: str) -> bool:
        """Whether it was given with anything in it."""
        assert name.lower() in self._known, name
        return bool(self._given.get(name.lower(), "").strip())

    def text(self, name: str, default: D) -> str | D:
        """As it stands, without blanks around it."""
        return self._given[name.lower()].strip() if self.has(name) else default

    def required(self, name: str, example: str) -> str:
        """An option without which nothing can be done."""
        if not self.has(name):
            raise self.error(name, f'is missing; an example is .option("{name}", "{example}")')
        return self._given[name.lower()].strip()

    def one_of(self, *names: str) -> str:
        """The one name of these that was given; exactly one must be."""
        given = [name for name in names if self.has(name)]
        if len(given) != 1:
            quoted = ", ".join(f'"{name}"' for name in names)
            had = f"{len(given)} were given" if given else "none was given"
            raise OptionError(f'format "{self._format}" needs exactly one of the options {quoted}; {had}')
        return given[0]

    def whole(self, name: str, default: D, *, least: int = 0) -> int | D:
        """A whole number."""
        if not self.has(name):
            return default
        text = self._given[name.lower()].strip()
        try:
            number = int(text)
        except ValueError:
            raise self.error(name, f'is "{text}", which is not a whole number') from None
        if number < least:
            raise self.error(name, f"is {number}, but at least {least} is needed")
        return number

    def flag(self, name: str, default: bool) -> bool:
        """true or false."""
        text = self.text(name, str(default)).lower()
        found = truth(text)
        if found is None:
            raise self.error(name, f'is "{text}"; it is either true or false')
        return found

    def choice(self, name: str, choices: Collection[str], default: str) -> str:
        """One of a few words, as documented."""
        text = self.text(name, default)
        found = next((choice for choice in choices if choice.lower() == text.lower()), None)
        if found is None:
            raise self.error(name, f'is "{text}"; it is one of {", ".join(choices)}')
        return found

    def words(self, name: str) -> tuple[str, ...]:
        """A list, parted by commas."""
        return tuple(word.strip() for word in self.text(name, "").split(",") if word.strip())

    def duration_ms(self, name: str, default: int) -> int:
        """A time such as 500ms, 30s, 15m, 1 hour; a bare number is milliseconds."""
        if not self.has(name):
            return default
        text = self._given[name.lower()].strip().lower()
        found = duration_ms(text)
        if found is None:
            raise self.error(name, f'is "{text}"; write a time as 500ms, 30s, 15m or 1h')
        return int(found)

    def size_bytes(self, name: str, default: D) -> int | D:
        """A size such as 64m or 1g; a bare number is bytes."""
        if not self.has(name):
            return default
        text = self._given[name.lower()].strip().lower()
        match = re.fullmatch(r"(\d+)\s*([kmgt]?)i?b?", text)
        if match is None or int(match[1]) < 1:
            raise self.error(name, f'is "{text}"; write a size as 1000000, 512k, 64m or 1g')
        return int(match[1]) << 10 * " kmgt".index(match[2] or " ")

    def json_object(self, name: str) -> dict[str, Any] | None:
        """A JSON object, None when it was not given."""
        if not self.has(name):
            return None
        text = self._given[name.lower()].strip()
        try:
            value = json.loads(text)
        except ValueError as error:
            raise self.error(name, f"is not JSON: {error}; it was {_shortened(text)}") from None
        if not isinstance(value, dict):
            raise self.error(name, f"must be a JSON object, and is {_shortened(text)}")
        return value


def duration_ms(text: str) -> float | None:
    """500ms, 30s, 15m, 1 hour, or a bare number of milliseconds; None for anything else."""
    match = _DURATION.fullmatch(text.strip().lower())
    return float(match[1]) * _UNIT_MS[match[2]] if match and match[2] in _UNIT_MS else None


def truth(text: str) -> bool | None:
    """true, yes, on, 1 or their opposites; None for anything else."""
    return {**dict.fromkeys(_TRUE, True), **dict.fromkeys(_FALSE, False)}.get(text.strip().lower())


def nearest(wrong: str, right: Iterable[str]) -> str | None:
    """The name that was probably meant; capitals, dashes and underscores do not count."""
    by_form = {_form(name): name for name in right}
    found = difflib.get_close_matches(_form(wrong), by_form, n=1, cutoff=0.6)
    return by_form[found[0]] if found else None


def _form(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _shortened(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "…"
