"""Typed requests ↔ commands, for whoever asks."""

from collections.abc import Collection
from typing import Any, Generic, NamedTuple, TypeVar, cast

from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.command import Body, RemotingCommand
from skyrocket.protocol.errors import error_of
from skyrocket.protocol.requests.header import Header, Request

A = TypeVar("A", bound=Header)

ONLY_SUCCESS = frozenset({int(ResponseCode.SUCCESS)})


class Reply(NamedTuple, Generic[A]):
    """The answer to a typed request."""

    header: A
    body: Body
    code: int
    remark: str | None


def command_of(request: Request[Any], body: Body = b"", flag: int = 0) -> RemotingCommand:
    """The command that asks this, or with ONEWAY_FLAG tells it; its opaque number is given when it is sent."""
    return RemotingCommand(request.code, flag=flag, ext_fields=request.ext_fields(), body=body)


def reply_of(request: Request[A], answer: RemotingCommand, accepted: Collection[int] = ONLY_SUCCESS) -> Reply[A]:
    """What was answered; raises the RequestError of a code that is not accepted."""
    if answer.code not in accepted:
        raise error_of(answer.code, answer.remark, answer.ext_fields)
    header = cast(A, request.answer.from_fields(answer.ext_fields))
    return Reply(header, answer.body, answer.code, answer.remark)
