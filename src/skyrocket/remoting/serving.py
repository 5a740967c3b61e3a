"""Typed serving: a handler takes a request as types and returns its answer as a type; bytes stay in here.

    serve(UpdateConsumerOffset, self.update)

    def update(self, peer: Peer, header: UpdateConsumerOffset, body: Body) -> object: ...

The request's class says all that is needed: the code it is served under, the fields of its header, the JSON of its body
(a request without declared JSON gives the bytes as they came) and the same of its answer. A handler returns

    None                                   success, and nothing to add
    OffsetAnswer(offset=7)                 the header of the answer
    GroupList(("a", "b"))                  its body; bytes are taken as encoded already
    Answered(header, body, remark, code)   several of these, or a code that is not success
    a coroutine of one of these            for the few that must wait
    UNANSWERED                             nothing goes back

and raises RequestError for a refusal. What must not pay for this (send, pull, pop) is served raw: `serve_raw`.
"""

from collections.abc import Awaitable, Callable, Iterable
from types import CoroutineType
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.command import Body, RemotingCommand
from skyrocket.protocol.requests.header import Header, Request
from skyrocket.remoting.answers import Outcome
from skyrocket.remoting.peer import Peer

R = TypeVar("R", bound=Request[Any])

RawHandler: TypeAlias = Callable[[Peer, RemotingCommand], Outcome]


class Answered(NamedTuple):
    """An answer of several parts."""

    header: Header | None = None
    body: object = None
    remark: str | None = None
    code: int = ResponseCode.SUCCESS


UNANSWERED: Final = Answered(code=-1)  # known by identity
UNSET_REMARK: Final = "not set any response code"  # RocketMQ: of answers whose handlers set no remark


class Serving(NamedTuple):
    """Who answers which codes; `in_thread`: beside the event loop, for handlers that touch nothing but the store."""

    codes: tuple[int, ...]
    handler: RawHandler
    in_thread: bool = False
    typed: Callable[..., object] | None = None  # what the handler wraps


Handlers: TypeAlias = Iterable[Serving]


def serve(request: type[R], handler: Callable[[Peer, R, Any], object], *, in_thread: bool = False) -> Serving:
    """Let a typed handler answer one kind of request."""
    return Serving((request.code,), _typed(request, handler), in_thread, handler)


def serve_raw(codes: int | Iterable[int], handler: RawHandler) -> Serving:
    """Let a handler answer commands as they are."""
    return Serving((codes,) if isinstance(codes, int) else tuple(codes), handler)


def _typed(request: type[R], handler: Callable[[Peer, R, Any], object]) -> RawHandler:
    declared = request.body

    def handle(peer: Peer, command: RemotingCommand) -> Outcome:
        header = request.from_fields(command.ext_fields)
        body: object = command.body
        if declared is not None:
            body = None if request.optional_body and not command.body else declared.decode(command.body)
        peer.version, peer.language = command.version, command.language
        result = handler(peer, header, body)
        if result.__class__ is CoroutineType:
            return _later(request, command, result)
        return _answer(request, command, result)

    return handle


async def _later(
    request: type[Request[Any]], command: RemotingCommand, result: Awaitable[object]
) -> RemotingCommand | None:
    return _answer(request, command, await result)


def _answer(request: type[Request[Any]], command: RemotingCommand, result: object) -> RemotingCommand | None:
    if result is None or result.__class__ is bytes:  # what most return: the short way
        return command.answer(ResponseCode.SUCCESS, None, _fields(request, None), result or b"")
    if result is UNANSWERED:
        return None
    if isinstance(result, Answered):
        header, content, remark, code = result
        return command.answer(code, remark, _fields(request, header), _encoded(request, content))
    if isinstance(result, Header):
        return command.answer(ResponseCode.SUCCESS, None, result.ext_fields())
    return command.answer(ResponseCode.SUCCESS, None, _fields(request, None), _encoded(request, result))


def _fields(request: type[Request[Any]], header: Header | None) -> dict[str, str] | None:
    if header is not None:
        return header.ext_fields()
    return {} if request.answer.is_sent else None  # RocketMQ: a header class without values is sent empty


def _encoded(request: type[Request[Any]], content: Any) -> Body:
    if content is None:
        return b""
    if isinstance(content, bytes | memoryview):
        return content
    assert request.answer_body is not None, f"{request.__name__} declares no body of its answer"
    return request.answer_body.encode(content)
