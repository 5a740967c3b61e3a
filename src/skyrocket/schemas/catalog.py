"""Which topic has which schema, from a TOML file; the first entry whose pattern fits a topic counts.

    [[schema]]
    topics = "Orders*"
    file = "order.avsc"                     # beside this file

    [[schema]]
    topics = "Payments"
    file = "shop.proto"                     # or what `protoc --include_imports --descriptor_set_out` wrote
    message = "shop.Payment"

    [[schema]]
    topics = "*"
    registry = "http://127.0.0.1:8081"      # for bodies that begin with the number of their schema

Addresses come from this file alone: a message can name nothing but a number.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import urlsplit

from skyrocket.clock import Clock, SystemClock
from skyrocket.errors import ConfigError, SkyrocketError
from skyrocket.schemas.numbered import BodyUnreadable, split_number
from skyrocket.schemas.readers import TreeReader, reader_of_file, reader_of_number
from skyrocket.schemas.registry import RegistryError, without_account

MOST_BODY_BYTES: Final = 1024 * 1024
_WORDS: Final = ("topics", "file", "message", "registry")
_FORGET_SECONDS: Final = 30.0  # a registry that did not know or answer is asked again after it
_MOST_FAILURES: Final = 1000


@dataclass(frozen=True, slots=True)
class Decoded:
    """What a body says, or why that is not known."""

    format: str  # Avro, Protobuf, JSON; "" while that is not known
    schema: str  # the name of the file with the message, or the registry with the number
    value: Any
    trouble: str = ""


class _OfFile:
    def __init__(self, reader: TreeReader, label: str) -> None:
        self._reader = reader
        self._label = label

    def decoded(self, body: bytes) -> Decoded | None:
        try:
            return Decoded(self._reader.format, self._label, self._reader.read(body))
        except BodyUnreadable as error:
            return Decoded(self._reader.format, self._label, None, str(error))


class _OfRegistry:
    """What a registry does not know is not asked for again at once: a topic may be full of such bodies."""

    def __init__(self, registry: str, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock
        self._failed: dict[int, tuple[float, str]] = {}

    def decoded(self, body: bytes) -> Decoded | None:
        try:
            number, data = split_number(body)
        except BodyUnreadable:
            return None  # nothing says that it was written with a schema
        label = f"{without_account(self._registry)}, number {number}"
        try:
            reader = self._reader(number)
        except SkyrocketError as error:
            return Decoded("", label, None, str(error))
        try:
            return Decoded(reader.format, label, reader.read(data))
        except (BodyUnreadable, ConfigError) as error:
            return Decoded(reader.format, label, None, str(error))

    def _reader(self, number: int) -> TreeReader:
        until, why = self._failed.get(number, (0.0, ""))
        if self._clock.monotonic() < until:
            raise RegistryError(why)
        try:
            return reader_of_number(self._registry, number)
        except SkyrocketError as error:
            if len(self._failed) >= _MOST_FAILURES:
                self._failed.clear()
            self._failed[number] = (self._clock.monotonic() + _FORGET_SECONDS, str(error))
            raise


class Catalog:
    """The schemas of topics; waits for registries, so it belongs into a thread."""

    def __init__(self, entries: "list[tuple[str, _OfFile | _OfRegistry]] | None" = None) -> None:
        self._entries = entries or []

    @classmethod
    def read(cls, path: Path, clock: Clock | None = None) -> Self:
        """From a file, with the schema files that it names; raises ConfigError."""
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"the file of schemas {path} cannot be read: {error}") from error
        try:
            given = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"{path} is not TOML: {error}") from error
        rows = given.pop("schema", None)
        if given or not isinstance(rows, list):
            raise ConfigError(f"{path} must be a list of [[schema]], each with topics, and file or registry")
        clock = clock or SystemClock()
        return cls([_entry(path, number, row, clock) for number, row in enumerate(rows, 1)])

    def __bool__(self) -> bool:
        return bool(self._entries)

    def decoded(self, topic: str, body: bytes) -> Decoded | None:
        """What a body of a topic says; None where no schema is known."""
        entry = next((each for pattern, each in self._entries if fnmatchcase(topic, pattern)), None)
        if entry is None:
            return None
        if len(body) > MOST_BODY_BYTES:
            return Decoded("", "", None, f"the body is larger than {MOST_BODY_BYTES:,} bytes: it is not decoded")
        return entry.decoded(body)


def catalog_of(path: Path | None) -> Catalog:
    """That of a file, or one without schemas; raises ConfigError."""
    return Catalog() if path is None else Catalog.read(path.expanduser())


def _entry(path: Path, number: int, row: Mapping[str, Any], clock: Clock) -> "tuple[str, _OfFile | _OfRegistry]":
    place = f"{path}, [[schema]] {number}"
    wrong = [name for name, value in row.items() if name not in _WORDS or not isinstance(value, str)]
    if wrong:
        raise ConfigError(f"{place}: {wrong[0]} is not known or no text; there are {', '.join(_WORDS)}")
    topics, file, message, registry = (row.get(name, "") for name in _WORDS)
    if not topics:
        raise ConfigError(f"{place}: topics is missing: a name or a pattern, as 'Orders*'")
    if bool(file) == bool(registry):
        raise ConfigError(f"{place}: give one of file and registry")
    if registry:
        if urlsplit(registry).scheme not in ("http", "https"):
            raise ConfigError(f"{place}: registry is no address: write it as http://host:8081")
        if message:
            raise ConfigError(f"{place}: bodies of a registry name their message themselves: leave out message")
        return topics, _OfRegistry(registry, clock)
    try:
        reader = reader_of_file(path.parent / file, message)
    except ConfigError as error:
        raise ConfigError(f"{place}: {error}") from error
    return topics, _OfFile(reader, f"{Path(file).name} {message}".strip())
