"""Protobuf: classes of messages from descriptors, and messages as trees."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from skyrocket.errors import ConfigError
from skyrocket.schemas.numbered import BodyUnreadable
from skyrocket.schemas.trees import Budget, leaf

HOW_TO_GET_IT: Final = "Protobuf bodies need protobuf: pip install 'skyrocket[protobuf]'"
TIME_MESSAGE: Final = "google.protobuf.Timestamp"
_ENUM: Final = 14  # FieldDescriptor.TYPE_ENUM
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_UNKNOWN: Final = 10


@lru_cache(maxsize=100)
def message_class(descriptors: bytes, name: str) -> Any:
    """The class of a message; raises ConfigError."""
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    except ImportError as error:
        raise ConfigError(HOW_TO_GET_IT) from error
    pool = descriptor_pool.DescriptorPool()
    try:
        files = descriptor_pb2.FileDescriptorSet.FromString(descriptors)
        for file in files.file:
            pool.Add(file)
        return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
    except KeyError as error:
        held = sorted(f"{file.package}.{each.name}".strip(".") for file in files.file for each in file.message_type)
        raise ConfigError(f"the descriptors have no message {name}; they have {', '.join(held)}") from error
    except Exception as error:  # a file of anybody: the library raises what it meets
        raise ConfigError(
            "the file holds no Protobuf descriptors: make it by `protoc --include_imports --descriptor_set_out=FILE …` "
            f"({error})"
        ) from error


def path_of(descriptors: bytes, message: str) -> tuple[int, ...] | None:
    """Where a message stands in the last of the files; None: it is in another one."""
    from google.protobuf import descriptor_pb2

    file = descriptor_pb2.FileDescriptorSet.FromString(descriptors).file[-1]
    inside, path = list(file.message_type), []
    for name in message.removeprefix(f"{file.package}.").split("."):
        place = next((number for number, each in enumerate(inside) if each.name == name), None)
        if place is None:
            return None
        path.append(place)
        inside = list(inside[place].nested_type)
    return tuple(path)


def name_at(descriptors: bytes, path: tuple[int, ...]) -> str:
    """The full name of the message at a place of the last file; raises BodyUnreadable."""
    from google.protobuf import descriptor_pb2

    file = descriptor_pb2.FileDescriptorSet.FromString(descriptors).file[-1]
    inside, names = list(file.message_type), [file.package] if file.package else []
    for place in path:
        if not 0 <= place < len(inside):
            raise BodyUnreadable(f"the body says that it is message {path} of its schema, which has no such message")
        names.append(inside[place].name)
        inside = list(inside[place].nested_type)
    return ".".join(names)


def message_tree(kind: Any, body: bytes) -> Any:
    """The fields of a body, for JSON; raises BodyUnreadable."""
    from google.protobuf.message import DecodeError
    from google.protobuf.unknown_fields import UnknownFieldSet

    found = kind()
    name = kind.DESCRIPTOR.full_name
    try:
        found.ParseFromString(body)
    except DecodeError as error:
        raise BodyUnreadable(f"the body is no {name}: {error}") from error
    fields = UnknownFieldSet(found)
    unknown = sorted({fields[place].field_number for place in range(len(fields))})
    if unknown and not found.ListFields():
        shown = ", ".join(map(str, unknown[:_MOST_UNKNOWN])) + (" …" if len(unknown) > _MOST_UNKNOWN else "")
        raise BodyUnreadable(f"the body has no field of {name}, but others (numbers {shown}): it has another schema")
    return _fields(found, Budget())


def _fields(message: Any, budget: Budget) -> Any:
    budget.take()
    if message.DESCRIPTOR.full_name == TIME_MESSAGE:
        return _moment(message)
    return {field.name: _field(message, field, budget) for field in message.DESCRIPTOR.fields}


def _field(message: Any, field: Any, budget: Budget) -> Any:
    value = getattr(message, field.name)
    if is_map(field):
        inner = field.message_type.fields_by_name["value"]
        return {str(leaf(key)): _one(value[key], inner, budget) for key in value}
    if field.is_repeated:
        return [_one(each, field, budget) for each in value]
    if field.has_presence and not message.HasField(field.name):
        budget.take()
        return None
    return _one(value, field, budget)


def _one(value: Any, field: Any, budget: Budget) -> Any:
    if field.message_type is not None:
        return _fields(value, budget)
    budget.take()
    if field.type == _ENUM:
        return enum_name(field, value)
    return leaf(value)


def is_map(field: Any) -> bool:
    """Whether it is written as map<…> in the .proto file."""
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def enum_name(field: Any, number: int) -> str:
    """Of a value of an enum; its number where the schema has no name for it."""
    names = field.enum_type.values_by_number
    return names[number].name if number in names else str(number)


def _moment(message: Any) -> str:
    try:
        return (_EPOCH + timedelta(seconds=message.seconds, microseconds=message.nanos // 1000)).isoformat()
    except OverflowError:
        return f"{message.seconds} s, {message.nanos} ns"
