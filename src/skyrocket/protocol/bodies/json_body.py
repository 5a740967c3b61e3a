"""A body ↔ its bytes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from skyrocket.errors import DataError
from skyrocket.fastjson import Dialect, dumps, loads
from skyrocket.fastjson.bean import Kind
from skyrocket.protocol.command import Body
from skyrocket.protocol.errors import MalformedBody

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BodyBase:
    """What every body has: members that we do not know, kept and written back."""

    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class JsonBody(Generic[T]):
    """One kind of body, in the dialect of Java peers."""

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

    def encode_4_9(self, body: T) -> bytes:
        """The bytes without members that 4.9 does not know, where they say nothing."""
        return dumps(self.kind.write(body, Dialect.V4_9))
