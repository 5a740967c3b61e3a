"""What type checkers accept behind `@consumer.on(…)`; the same is checked at registration (signature.py).

The first parameter is the message, or its body as one of the types that bodies can be; the result is None or a
ConsumeStatus, now or awaited. Types of libraries are described by what they have, so that none must be installed.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, ClassVar, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar, overload

from skyrocket.client.consumer.handlers import ConsumeStatus
from skyrocket.client.core.message import ReceivedMessage

Result: TypeAlias = "ConsumeStatus | Awaitable[None] | Awaitable[ConsumeStatus | None] | None"


class Dataclass(Protocol):
    """Any dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


class Model(Protocol):
    """Any model of pydantic."""

    def model_dump_json(self) -> str: ...


class Struct(Protocol):
    """Any Struct of msgspec."""

    __struct_fields__: ClassVar[tuple[str, ...]]


class Protobuf(Protocol):
    """Any message of protobuf."""

    def SerializeToString(self) -> bytes: ...  # noqa: N802 - theirs


Body: TypeAlias = bytes | str | Mapping[str, Any] | Sequence[Any] | Dataclass | Model | Struct | Protobuf

B = TypeVar("B", bound=Body)
T = TypeVar("T")
R = TypeVar("R", bound=Result)
P = ParamSpec("P")
OfMessage = TypeVar("OfMessage", bound="Callable[Concatenate[ReceivedMessage, ...], Result]")
OfMessages = TypeVar("OfMessages", bound="Callable[[list[ReceivedMessage]], Result]")


class HandlerDecorator(Protocol):
    """For a function of the message, or of its body."""

    @overload
    def __call__(self, function: OfMessage, /) -> OfMessage: ...

    @overload
    def __call__(self, function: Callable[Concatenate[B, P], R], /) -> Callable[Concatenate[B, P], R]: ...


class BatchDecorator(Protocol):
    """For a function of many messages, or of their bodies."""

    @overload
    def __call__(self, function: OfMessages, /) -> OfMessages: ...

    @overload
    def __call__(self, function: Callable[[list[B]], R], /) -> Callable[[list[B]], R]: ...
