"""A schema at work on the bodies that people look at: a body ▸ a tree for JSON, within bounds."""

from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Protocol

import orjson

from skyrocket.errors import ConfigError
from skyrocket.schemas.avro import datum, parsed_with_names
from skyrocket.schemas.avro_bounds import check_bounds
from skyrocket.schemas.descriptors import descriptors_of_file, numbered_descriptors, read_file
from skyrocket.schemas.numbered import BodyUnreadable, split_message_path
from skyrocket.schemas.protobuf import message_class, message_tree, name_at
from skyrocket.schemas.registry import numbered_schema, versioned_schema
from skyrocket.schemas.trees import Budget, tree

_MOST_REFERENCES: Final = 100


class TreeReader(Protocol):
    """One schema."""

    @property
    def format(self) -> str:
        """Avro, Protobuf or JSON."""
        ...

    def read(self, body: bytes) -> Any:
        """What a body says, for JSON; raises BodyUnreadable, or ConfigError when a library is missing."""
        ...


class AvroTrees:
    """Bodies are one datum of the schema."""

    format = "Avro"

    def __init__(self, schema: str, imported: tuple[str, ...] = ()) -> None:
        self._schema, self._named = parsed_with_names(schema, imported)

    def read(self, body: bytes) -> Any:
        """The datum; raises BodyUnreadable."""
        check_bounds(body, self._schema, self._named)
        return tree(datum(body, self._schema), Budget())


class ProtobufTrees:
    """Bodies are one message; without its name they say themselves which of the file, as a registry's clients do."""

    format = "Protobuf"

    def __init__(self, descriptors: bytes, message: str = "") -> None:
        self._descriptors = descriptors
        self._message = message
        if message:
            message_class(descriptors, message)  # raises for one that is not there

    def read(self, body: bytes) -> Any:
        """The message; raises BodyUnreadable."""
        name, data = self._message, body
        if not name:
            path, data = split_message_path(body)
            name = name_at(self._descriptors, path)
        return message_tree(message_class(self._descriptors, name), data)


class JsonTrees:
    """Bodies are JSON, whatever its schema: a registry's clients put a number before it."""

    format = "JSON"

    def read(self, body: bytes) -> Any:
        """The value; raises BodyUnreadable."""
        try:
            return tree(orjson.loads(body), Budget())
        except orjson.JSONDecodeError as error:
            raise BodyUnreadable(f"the body is not JSON: {error}") from error


def reader_of_file(path: Path, message: str = "") -> TreeReader:
    """By its name: .avsc is Avro, .proto and everything else Protobuf; raises ConfigError."""
    if path.suffix in (".avsc", ".json"):
        if message:
            raise ConfigError(f"{path.name} is an Avro schema, which has one type: leave out message = {message!r}")
        return AvroTrees(read_file(path).decode("utf-8", "replace"))
    if not message:
        raise ConfigError(f"{path.name} needs the name of the message in it, as message = 'shop.Order'")
    return ProtobufTrees(descriptors_of_file(path), message)


@lru_cache(maxsize=1000)
def reader_of_number(registry: str, number: int) -> TreeReader:
    """For the bodies that name this number; raises RegistryError, ConfigError."""
    answer = numbered_schema(registry, number)
    kind = answer.get("schemaType", "AVRO")
    if kind == "PROTOBUF":
        return ProtobufTrees(numbered_descriptors(registry, number))
    if kind == "JSON":
        return JsonTrees()
    if kind != "AVRO":
        raise ConfigError(f"the registry's schema {number} is of {kind}, which is not read here")
    imported: dict[str, str] = {}
    _gather(registry, answer.get("references", ()), imported)
    return AvroTrees(str(answer["schema"]), tuple(imported.values()))


def _gather(registry: str, references: Any, found: dict[str, str]) -> None:
    """Schemas whose names others use stand before those."""
    for each in references:
        if each["name"] in found:
            continue
        if len(found) >= _MOST_REFERENCES:
            raise ConfigError(f"the schema refers to more than {_MOST_REFERENCES} others")
        found[each["name"]] = ""  # who refers to it in a circle goes on
        answer = versioned_schema(registry, each["subject"], str(each["version"]))
        _gather(registry, answer.get("references", ()), found)
        del found[each["name"]]
        found[each["name"]] = str(answer["schema"])
