"""A body ↔ its bytes."""

from collections.abc import Mapping
from dataclasses import field, fields
from typing import Any, Generic, NamedTuple, Self, TypeAlias, TypeVar, dataclass_transform

from skyrocket.errors import DataError
from skyrocket.fastjson import Dialect, dumps, loads
from skyrocket.fastjson.bean import Kind, bean_of
from skyrocket.protocol.command import Body
from skyrocket.protocol.errors import MalformedBody
from skyrocket.protocol.late_init import late_init_dataclass

T = TypeVar("T")


C = TypeVar("C", bound=type[Any])


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def body(cls: C) -> C:
    """Make a class the content of a body: a dataclass with slots, frozen to type checkers.

    It takes what it compares and shows from BodyBase. A dataclass of its own kind would compile five methods for each
    of seventy classes, at every start.
    """
    return late_init_dataclass()(cls)


class JsonBody(NamedTuple, Generic[T]):
    """A body that is no BodyBase, in the dialect of Java peers: a noun of `model`, a list."""

    kind: Kind[T]

    def decode(self, data: Body) -> T:
        """The body; raises MalformedBody, which a server answers with code 1."""
        try:
            return self.kind.read(loads(bytes(data)))
        except DataError as error:
            raise MalformedBody(f"the body is not what belongs there: {error}") from None

    def encode(self, body: T) -> bytes:
        """The bytes as RocketMQ 5.4.0 writes them."""
        return dumps(self.kind.write(body, Dialect.COMPACT))


@body
class BodyBase:
    """What every body has: members that we do not know, kept and written back."""

    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False, kw_only=True)

    def _values(self) -> tuple[object, ...]:
        return tuple(getattr(self, each.name) for each in fields(self) if each.compare)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BodyBase) or other.__class__ is not self.__class__:
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        return hash((self.__class__, *self._values()))

    def __repr__(self) -> str:
        shown = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
        return f"{self.__class__.__qualname__}({shown})"

    @classmethod
    def decode(cls, data: Body) -> Self:
        """The body; raises MalformedBody, which a server answers with code 1."""
        return JsonBody(bean_of(cls)).decode(data)

    def encode(self) -> bytes:
        """The bytes as RocketMQ 5.4.0 writes them."""
        return dumps(bean_of(type(self)).write(self, Dialect.COMPACT))


# What a request or an answer may have for a body: both read and write it alike.
BodyKind: TypeAlias = type[BodyBase] | JsonBody[Any]
