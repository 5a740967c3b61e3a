"""From bytes to values and back, by type.

    bytes, str                                   as they are; UTF-8
    dict, list, TypedDict, dataclass             JSON, checked field by field (values.py)
    pydantic model, msgspec Struct               JSON, by their own libraries
    class of protobuf                            its own wire format: the class is the schema
    Annotated[Order, Avro(schema)]               Avro (avro.py)
    Annotated[Order, MyCodec()]                  whatever has `encode` and `decode`

Libraries are imported when a type of theirs is met, never before. Which codec a handler needs is found out when it is
registered; a message costs one call.
"""

import dataclasses
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import PurePath
from typing import Annotated, Any, Final, Protocol, TypeVar, get_args, get_origin, is_typeddict, runtime_checkable

import orjson

from skyrocket.client.bodies.values import NotReadable, by_library, converter_of

T = TypeVar("T")

_OPTIONS: Final = orjson.OPT_NON_STR_KEYS
_LARGEST_OF_ORJSON: Final = "Integer exceeds 64-bit range"


@runtime_checkable
class BodyCodec(Protocol[T]):
    """How a value becomes a body, and a body a value. What `decode` raises is the reason in the dead letter."""

    def encode(self, value: T, /) -> bytes: ...

    def decode(self, body: bytes, /) -> T: ...


@runtime_checkable
class TypedCodec(Protocol):
    """A codec that can be made to decode into a type: `Annotated[Order, Avro(schema)]`."""

    def of(self, kind: Any, /) -> BodyCodec[Any]: ...


@dataclasses.dataclass(frozen=True, slots=True)
class FunctionCodec:
    """A codec of two functions."""

    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]


def codec_for(kind: Any) -> BodyCodec[Any]:
    """The codec of a type; raises NotReadable for a type that bodies cannot be."""
    if get_origin(kind) is Annotated:
        own, *notes = get_args(kind)
        for note in notes:
            if isinstance(note, TypedCodec):
                return note.of(own)
            if isinstance(note, BodyCodec) and not isinstance(note, type):
                return note
        kind = own
    if kind is bytes:
        return FunctionCodec(as_body, _same)
    if kind is str:
        return FunctionCodec(as_body, _text)
    if hasattr(kind, "model_validate_json"):
        return FunctionCodec(as_body, by_library(kind.model_validate_json))
    if hasattr(kind, "__struct_fields__"):
        import msgspec

        return FunctionCodec(as_body, by_library(msgspec.json.Decoder(kind).decode))
    if hasattr(kind, "FromString") and hasattr(kind, "SerializeToString"):
        return FunctionCodec(as_body, kind.FromString)
    return _json_codec(kind)


def _json_codec(kind: Any) -> BodyCodec[Any]:
    bare = get_origin(kind) or kind
    if bare in (dict, list) and not get_args(kind):
        return FunctionCodec(as_body, _checked(bare))
    if dataclasses.is_dataclass(bare) or is_typeddict(bare) or bare in (dict, list, tuple, set, frozenset):
        convert = converter_of(kind)
        return FunctionCodec(as_body, lambda body: convert(orjson.loads(body)))
    raise NotReadable(
        f"{getattr(kind, '__name__', kind)} is no type of a body: use bytes, str, dict, list, a TypedDict, a "
        "dataclass, a pydantic model, a msgspec Struct, a protobuf message, or Annotated[type, codec]"
    )


def _checked(kind: type) -> Callable[[bytes], Any]:
    def decode(body: bytes) -> Any:
        value = orjson.loads(body)
        if not isinstance(value, kind):
            raise NotReadable(f"the JSON is a {type(value).__name__}, not a {kind.__name__}")
        return value

    return decode


def _same(body: bytes) -> bytes:
    return body


def _text(body: bytes) -> str:
    return body.decode()


def as_body(value: Any) -> bytes:
    """A value as a body, by its own type: bytes and text as they are, messages of protobuf in their format, else JSON.

    JSON knows dataclasses, models of pydantic and msgspec, UUID, Decimal (as text), date and time. Raises TypeError.
    """
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if isinstance(value, str):
        return value.encode()
    kind = type(value)
    if hasattr(kind, "model_dump_json"):
        text: str = value.model_dump_json()
        return text.encode()
    if hasattr(kind, "SerializeToString"):
        packed: bytes = value.SerializeToString()
        return packed
    return json_bytes(value)


def json_bytes(value: Any) -> bytes:
    """As JSON, without blanks."""
    try:
        return orjson.dumps(value, default=plain, option=_OPTIONS)
    except TypeError as error:
        if _LARGEST_OF_ORJSON not in str(error):
            raise (error.__cause__ or error) from None
    return json.dumps(value, default=plain, ensure_ascii=False, separators=(",", ":")).encode()


def plain(value: Any) -> Any:
    """What JSON has for a value that it does not know; raises TypeError."""
    kind = type(value)
    if isinstance(value, Decimal | PurePath):
        return str(value)  # a number would lose digits
    if hasattr(kind, "model_dump"):
        return value.model_dump(mode="json")
    if hasattr(kind, "__struct_fields__"):
        return {name: getattr(value, name) for name in kind.__struct_fields__}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, set | frozenset):
        return list(value)
    raise TypeError(f"{value!r} ({kind.__name__}) has no form in JSON: give its parts, or a codec")
