"""A handler sees types and returns one; what goes over the wire is made here, by the declarations of its request."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from skyrocket.model.data_version import DataVersion
from skyrocket.protocol.bodies.batch_ack import BatchAck
from skyrocket.protocol.bodies.connections import ConsumerList
from skyrocket.protocol.bodies.groups import GroupList
from skyrocket.protocol.bodies.locks import QueueLocks
from skyrocket.protocol.bodies.topics import DATA_VERSION
from skyrocket.protocol.codes import LanguageCode
from skyrocket.protocol.command import ONEWAY_FLAG, RemotingCommand
from skyrocket.protocol.errors import TopicNotExist
from skyrocket.protocol.frames import FrameReader
from skyrocket.protocol.requests.broker_registration import QueryDataVersion, QueryDataVersionAnswer
from skyrocket.protocol.requests.consumers import GetConsumerListByGroup, UnlockBatchMq
from skyrocket.protocol.requests.header import Request
from skyrocket.protocol.requests.offsets import GetMaxOffset, OffsetAnswer
from skyrocket.protocol.requests.pop import BatchAckMessage
from skyrocket.protocol.requests.query import QueryTopicConsumeByWho, ViewMessageById
from skyrocket.remoting.answers import LaterAnswer
from skyrocket.remoting.exchange import command_of
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.router import Router
from skyrocket.remoting.serving import UNANSWERED, Answered
from tests.waiting import until

PEER = cast(Peer, SimpleNamespace(version=0, language=None))
QUEUE = GetMaxOffset(topic="Orders", queue_id=3)
VERSION = QueryDataVersion(broker_name="a", broker_addr="h:1", cluster_name="c", broker_id=0)


class Handler:
    """Keeps what it is given, and returns or raises what it shall."""

    def __init__(self, result: object = None) -> None:
        self.result = result
        self.taken: list[tuple[object, object]] = []

    def handle(self, _: Peer, header: object, body: object) -> object:
        self.taken.append((header, body))
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


def answered(request: Request[Any], body: bytes, handler: Callable[..., object]) -> RemotingCommand:
    return answer_to(command_of(request, body), type(request), handler)


def answer_to(command: RemotingCommand, kind: type[Request[Any]], handler: Callable[..., object]) -> RemotingCommand:
    router = Router()
    router.serve(kind, handler)
    frame = router.handle(PEER, command)
    assert isinstance(frame, bytes)
    [answer] = FrameReader().receive(frame)
    return answer


# ── what a handler is given ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_request_without_declared_body_gives_the_bytes_as_they_came() -> None:
    handler = Handler(OffsetAnswer(offset=7))
    answered(QUEUE, b"\0raw", handler.handle)
    assert handler.taken == [(QUEUE, b"\0raw")]


def test_a_declared_body_is_given_as_its_type() -> None:
    handler = Handler()
    locks = QueueLocks("g", "c", ())
    answered(UnlockBatchMq(), locks.encode(), handler.handle)
    assert handler.taken == [(UnlockBatchMq(), locks)]


def test_an_optional_body_that_is_missing_is_none() -> None:
    handler = Handler()
    assert answered(BatchAckMessage(), b"", handler.handle).code == 0
    assert answered(BatchAckMessage(), b"{}", handler.handle).code == 0
    (_, missing), (_, empty) = handler.taken
    assert missing is None
    assert isinstance(empty, BatchAck)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"mqSet":7}'])
def test_a_body_that_is_not_what_is_declared_is_refused_before_the_handler(body: bytes) -> None:
    handler = Handler()
    answer = answered(UnlockBatchMq(), body, handler.handle)
    assert (answer.code, handler.taken) == (1, [])
    assert (answer.remark or "").startswith("the body is not what belongs there: ")


def test_a_missing_field_is_refused_before_the_handler() -> None:
    handler = Handler()
    answer = answer_to(RemotingCommand(QUEUE.code, 1, ext_fields={"topic": "Orders"}), GetMaxOffset, handler.handle)
    assert (answer.code, handler.taken) == (1, [])
    assert answer.remark == "the custom field <queueId> of GetMaxOffset is null"


def test_a_handler_sees_version_and_language_of_the_request() -> None:
    seen: list[tuple[int, LanguageCode | None]] = []

    def handle(peer: Peer, _: GetMaxOffset, __: object) -> None:
        seen.append((peer.version, peer.language))

    for version, language in ((493, LanguageCode.JAVA), (317, LanguageCode.CPP)):
        command = RemotingCommand(QUEUE.code, 1, ext_fields=QUEUE.to_fields(), version=version, language=language)
        answer_to(command, GetMaxOffset, handle)
    assert seen == [(493, LanguageCode.JAVA), (317, LanguageCode.CPP)]


# ── what it returns ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("request_", "result", "code", "remark", "fields", "body"),
    [
        (UnlockBatchMq(), None, 0, None, None, b""),
        (QUEUE, OffsetAnswer(offset=7), 0, None, {"offset": "7"}, b""),
        (QUEUE, None, 0, None, {}, b""),  # a header is declared: sent, though it has no values
        (QueryTopicConsumeByWho(topic="T"), GroupList(("a",)), 0, None, None, GroupList(("a",)).encode()),
        (
            GetConsumerListByGroup(consumer_group="g"),
            ConsumerList(()),
            0,
            None,
            {},
            ConsumerList(()).encode(),
        ),
        (ViewMessageById(offset=1), b"record", 0, None, None, b"record"),
        (ViewMessageById(offset=1), memoryview(b"record"), 0, None, None, b"record"),
        (VERSION, QueryDataVersionAnswer(changed=True), 0, None, {"changed": "true"}, b""),
        (
            VERSION,
            Answered(QueryDataVersionAnswer(changed=False), DataVersion(timestamp=5)),
            0,
            None,
            {"changed": "false"},
            DATA_VERSION.encode(DataVersion(timestamp=5)),
        ),
        (QUEUE, Answered(remark="well"), 0, "well", {}, b""),
        (QUEUE, Answered(remark="no", code=209), 209, "no", {}, b""),
        (ViewMessageById(offset=1), Answered(body=b"record", remark="x"), 0, "x", None, b"record"),
    ],
)
def test_answers(
    request_: Request[Any],
    result: object,
    code: int,
    remark: str | None,
    fields: dict[str, str] | None,
    body: bytes,
) -> None:
    sent = b"{}" if request_.body is not None else b""
    answer = answered(request_, sent, Handler(result).handle)
    assert (answer.code, answer.remark, answer.ext_fields, bytes(answer.body)) == (code, remark, fields, body)


def test_a_body_that_is_declared_nowhere_is_our_own_mistake(caplog: pytest.LogCaptureFixture) -> None:
    answer = answered(QUEUE, b"", Handler(GroupList(())).handle)
    assert answer.code == 1
    assert (answer.remark or "").startswith("AssertionError: GetMaxOffset declares no body of its answer")
    assert len(caplog.records) == 1


def test_a_refusal_becomes_its_code_and_remark() -> None:
    answer = answered(QUEUE, b"", Handler(TopicNotExist("no topic", {"a": "b"})).handle)
    assert (answer.code, answer.remark, answer.ext_fields) == (17, "no topic", {"a": "b"})


@pytest.mark.parametrize("refused", [False, True])
async def test_a_coroutine_is_answered_when_it_is_done(refused: bool) -> None:
    async def handle(_: Peer, header: GetMaxOffset, __: object) -> OffsetAnswer:
        if refused:
            raise TopicNotExist(header.topic)
        return OffsetAnswer(offset=header.queue_id)

    router = Router()
    router.serve(GetMaxOffset, handle)
    later = router.handle(PEER, command_of(QUEUE))
    assert isinstance(later, LaterAnswer)
    await until(lambda: not later.is_open)
    assert isinstance(later.frame, bytes)
    [answer] = FrameReader().receive(later.frame)
    assert (answer.code, answer.remark) == ((17, "Orders") if refused else (0, None))
    assert answer.ext_fields == (None if refused else {"offset": "3"})


@pytest.mark.parametrize("result", [OffsetAnswer(offset=7), TopicNotExist("no")])
def test_a_oneway_request_is_handled_and_not_answered(result: object) -> None:
    handler, router = Handler(result), Router()
    router.serve(GetMaxOffset, handler.handle)
    assert router.handle(PEER, command_of(QUEUE, flag=ONEWAY_FLAG)) is None
    assert handler.taken == [(QUEUE, b"")]


def test_a_handler_may_leave_a_request_unanswered() -> None:
    router = Router()
    router.serve(GetMaxOffset, Handler(UNANSWERED).handle)
    assert router.handle(PEER, command_of(QUEUE)) is None
