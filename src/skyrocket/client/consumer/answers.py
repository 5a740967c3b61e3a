"""Handlers with a result: it is sent on, or back to whoever asked.

    @consumer.on("Orders", tags="paid")
    @publish("Invoices", tags="new")
    async def invoice(body: Order) -> Invoice: ...      # sent to Invoices; None sends nothing

    @consumer.on("Quotes")
    @reply
    async def quote(body: Question) -> Answer: ...      # what `producer.request` returns

The result leaves before the message counts as consumed: when it cannot be sent, the message comes again, and its result
is then sent once more. A message that was not sent with `request` asks for no reply; its handler runs all the same.
"""

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from skyrocket.client.core.errors import IllegalSubscription
from skyrocket.client.core.hooks import ConsumeContext
from skyrocket.client.core.message import CORRELATION_ID, Message, ReceivedMessage
from skyrocket.client.core.middleware import Middleware, Proceed
from skyrocket.client.core.names import check_topic
from skyrocket.client.core.settings import ClientSettings

if TYPE_CHECKING:
    from skyrocket.client.producer.producer import Producer

P = ParamSpec("P")
T = TypeVar("T")

_ATTRIBUTE: Final = "__skyrocket_answer__"
_SUFFIX: Final = "-answers"


@dataclass(frozen=True, slots=True)
class Answer:
    """Where the result of a handler goes."""

    topic: str = ""  # "": back to whoever asked
    tags: str | None = None
    keys_of_request: bool = True
    codec: Any = None

    def body(self, result: Any) -> bytes:
        """As it is sent."""
        if self.codec is not None:
            encoded: bytes = self.codec.encode(result)
            return encoded
        from skyrocket.client.bodies.codecs import as_body

        return as_body(result)


def publish(
    topic: str, *, tags: str | None = None, keys: bool = True, codec: Any = None
) -> Callable[[Callable[P, Any]], Callable[P, Awaitable[None]]]:
    """Decorator below `@consumer.on`: what the handler returns is sent to a topic, with the keys of its message.

    A list is one message; a `Message` is sent as it is.
    """

    check_topic(topic)

    def decorate(function: Callable[P, Any]) -> Callable[P, Awaitable[None]]:
        return _marked(function, Answer(topic, tags, keys, codec))

    return decorate


def reply(function: Callable[P, Any]) -> Callable[P, Awaitable[None]]:
    """Decorator below `@consumer.on`: what the handler returns is the answer to `producer.request`."""
    return _marked(function, Answer())


def _marked(function: Callable[P, Any], answer: Answer) -> Callable[P, Awaitable[None]]:
    if answer_of(function) is not None:
        raise IllegalSubscription(
            f"handler {function.__qualname__} has two of @publish and @reply: its result goes to one place, send the "
            "other with a producer"
        )
    if inspect.iscoroutinefunction(function):

        async def call_async(*args: P.args, **kwargs: P.kwargs) -> Any:
            return await function(*args, **kwargs)

        marked: Callable[..., Any] = call_async
    else:

        def call(*args: P.args, **kwargs: P.kwargs) -> Any:
            return function(*args, **kwargs)

        marked = call
    functools.update_wrapper(marked, function)
    setattr(marked, _ATTRIBUTE, answer)
    return marked


def answer_of(function: Callable[..., Any]) -> Answer | None:
    """What `publish` or `reply` has noted."""
    found: Answer | None = getattr(function, _ATTRIBUTE, None)
    return found


class Answering(Middleware):
    """The innermost middleware of a handler with a result."""

    def __init__(self, answer: Answer, producer: "Callable[[], Awaitable[Producer]]") -> None:
        self._answer = answer
        self._producer = producer

    async def consume(self, call: ConsumeContext, proceed: Proceed) -> Any:
        result = await proceed()
        if result is None:
            return None
        (message,) = call.messages
        if self._answer.topic:
            await (await self._producer()).send(self._message(result, message))
        elif CORRELATION_ID in message.properties:
            await (await self._producer()).reply(message, self._answer.body(result))
        return None

    def _message(self, result: Any, request: ReceivedMessage) -> Message:
        answer = self._answer
        if isinstance(result, Message):
            return result if result.topic else replace(result, topic=answer.topic)
        keys = request.keys if answer.keys_of_request else ()
        return Message(answer.topic, answer.body(result), tags=answer.tags, keys=keys)


class AnswerProducer:
    """The producer of one consumer, started by the first result."""

    def __init__(self, group: str, client: ClientSettings) -> None:
        self._group = f"{group}{_SUFFIX}"
        self._client = client
        self.middleware: list[Middleware] = []
        self._starting = asyncio.Lock()
        self._made: Producer | None = None

    async def get(self) -> "Producer":
        """Started."""
        async with self._starting:
            if self._made is None:
                from skyrocket.client.producer.producer import Producer  # few consumers send

                made = Producer(self._group, client=self._client)
                made.use(*self.middleware)
                await made.start()
                self._made = made
        return self._made

    async def stop(self) -> None:
        """After the last handler."""
        if self._made is not None:
            await self._made.stop()
