"""A Protobuf message as types of columns, and bodies as values of it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from skyrocket.columns.schema import TIMESTAMP
from skyrocket.errors import ConfigError
from skyrocket.schemas.numbered import BodyUnreadable, split_message_path, split_number
from skyrocket.schemas.protobuf import TIME_MESSAGE, enum_name, is_map, message_class

# By the numbers of FieldDescriptor.TYPE_…; 10 and 11 are messages.
_TYPES: Final = {
    **dict.fromkeys((5, 15, 17), pa.int32()),
    **dict.fromkeys((3, 16, 18, 13, 7), pa.int64()),  # also unsigned ones of 32 bits
    **dict.fromkeys((4, 6), pa.decimal128(20, 0)),  # unsigned ones of 64 bits
    1: pa.float64(),
    2: pa.float32(),
    8: pa.bool_(),
    9: pa.string(),
    12: pa.binary(),
    14: pa.string(),
}
_ENUM: Final = 14
_UNSIGNED: Final = (4, 6)


@dataclass(frozen=True, slots=True)
class ProtobufReader:
    """Reads bodies; plain values, as it travels to the executors."""

    descriptors: bytes  # a FileDescriptorSet
    message: str
    is_numbered: bool = False  # a registry's clients put the number of the schema before a body
    path: tuple[int, ...] | None = None  # of the message in its file, where the registry says it

    @property
    def arrow_type(self) -> pa.DataType:
        """The struct of the message; raises ConfigError."""
        return _type_of(message_class(self.descriptors, self.message).DESCRIPTOR, ())

    def read(self, body: bytes) -> Any:
        """The fields of one body; raises BodyUnreadable."""
        from google.protobuf.message import DecodeError

        found = message_class(self.descriptors, self.message)()
        data = body
        if self.is_numbered:
            path, data = split_message_path(split_number(body)[1])
            if self.path is not None and path != self.path:
                raise BodyUnreadable(f"the body is another message of its schema than {self.message}")
        try:
            found.ParseFromString(data)
        except DecodeError as error:
            raise BodyUnreadable(f"the body is no {self.message}: {error}") from error
        return _values(found)


def _type_of(descriptor: Any, around: tuple[str, ...]) -> pa.DataType:
    if descriptor.full_name == TIME_MESSAGE:
        return TIMESTAMP
    if descriptor.full_name in around:
        raise ConfigError(f"the Protobuf message {descriptor.full_name} contains itself, and columns have an end")
    inside = (*around, descriptor.full_name)
    return pa.struct([(field.name, _field_type(field, inside)) for field in descriptor.fields])


def _field_type(field: Any, around: tuple[str, ...]) -> pa.DataType:
    if is_map(field):
        key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
        return pa.map_(_field_type(key, around), _field_type(value, around))
    kind = _TYPES.get(field.type)
    if kind is None:
        kind = _type_of(field.message_type, around)
    return pa.list_(kind) if field.is_repeated else kind


def _values(message: Any) -> Any:
    descriptor = message.DESCRIPTOR
    if descriptor.full_name == TIME_MESSAGE:
        return message.seconds * 1_000_000 + message.nanos // 1000
    return {field.name: _value(message, field) for field in descriptor.fields}


def _value(message: Any, field: Any) -> Any:
    value = getattr(message, field.name)
    if is_map(field):
        of_value = _converter(field.message_type.fields_by_name["value"])
        return [(key, of_value(value[key])) for key in value]
    if field.is_repeated:
        return [_converter(field)(each) for each in value]
    if field.has_presence and not message.HasField(field.name):
        return None
    return _converter(field)(value)


def _converter(field: Any) -> Callable[[Any], Any]:
    if field.message_type is not None:
        return _values
    if field.type == _ENUM:
        return lambda number: enum_name(field, number)
    return lambda value: value
