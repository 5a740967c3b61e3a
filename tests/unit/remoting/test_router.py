"""Codes find handlers, exceptions become answers, full classes refuse."""

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest

from skyrocket.protocol.codes import RequestCode, ResponseCode
from skyrocket.protocol.command import ONEWAY_FLAG, RemotingCommand
from skyrocket.protocol.errors import NoPermission, TopicNotExist
from skyrocket.protocol.frames import MAX_FRAME_SIZE, FrameReader
from skyrocket.remoting.admission import RequestClass, page_cache_busy, waited_too_long
from skyrocket.remoting.answers import Answer, LaterAnswer, Outcome
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.router import NOT_ON_VIP_PORT, GoingAway, Router, failure_remark
from tests.unit.remoting.peers import ECHO, echo_router

NOBODY = cast(Peer, SimpleNamespace(unanswered_count=0))


def answer_to(router: Router | GoingAway, request: RemotingCommand) -> RemotingCommand:
    frame = router.handle(NOBODY, request)
    assert isinstance(frame, bytes)
    [answer] = FrameReader().receive(frame)
    assert answer.is_response
    assert answer.opaque == request.opaque
    return answer


def test_an_unknown_code_is_answered_with_rocketmqs_remark() -> None:
    answer = answer_to(Router(), RemotingCommand(9999, 5))
    assert (answer.code, answer.remark, answer.ext_fields) == (3, " request type 9999 not supported", None)


def test_a_refusal_becomes_its_code_remark_and_fields() -> None:
    def refuse(_: Peer, request: RemotingCommand) -> Outcome:
        raise TopicNotExist("topic[x] not exist", {"MSG_REGION": "r"})

    router = Router()
    router.register(10, refuse)
    answer = answer_to(router, RemotingCommand(10, 8))
    assert (answer.code, answer.remark, answer.ext_fields) == (17, "topic[x] not exist", {"MSG_REGION": "r"})


def test_any_other_exception_becomes_code_1_with_its_place(caplog: pytest.LogCaptureFixture) -> None:
    def stumble(_: Peer, request: RemotingCommand) -> Outcome:
        raise KeyError("brokerId")

    router = Router()
    router.register(103, stumble)
    for _ in range(3):
        answer = answer_to(router, RemotingCommand(103))
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert answer.ext_fields is None
    assert answer.remark is not None
    assert answer.remark.startswith("KeyError: 'brokerId', tests.unit.remoting.test_router.stumble(test_router.py:")
    assert len(caplog.records) == 1, "the same failure is not logged again and again"
    assert [route.failed for route in router.routes()] == [3, 0]


def test_a_long_exception_text_is_cut() -> None:
    try:
        raise ValueError("x" * 10_000)
    except ValueError as error:
        remark = failure_remark(error)
    assert len(remark) <= 2000
    assert remark.endswith(")")


def test_an_answer_that_does_not_fit_into_a_frame_becomes_an_error() -> None:
    router = Router()
    router.register(11, lambda _, request: request.answer(0, body=bytes(MAX_FRAME_SIZE)))
    assert answer_to(router, RemotingCommand(11)).code == ResponseCode.SYSTEM_ERROR


@pytest.mark.parametrize("code", [ECHO, 9999, 12])
def test_a_oneway_request_is_never_answered(code: int) -> None:
    def stumble(_: Peer, request: RemotingCommand) -> Outcome:
        raise NoPermission

    router = echo_router()
    router.register(12, stumble)
    assert router.handle(NOBODY, RemotingCommand(code, flag=ONEWAY_FLAG)) is None


def test_checks_run_before_the_handler() -> None:
    def check(_: Peer, request: RemotingCommand) -> None:
        if request.ext_fields is None:
            raise NoPermission("username cannot be null.")

    router = Router()
    router.check_with(check)
    router.register(ECHO, lambda _, request: request.answer(0))
    assert answer_to(router, RemotingCommand(ECHO)).remark == "username cannot be null."
    assert answer_to(router, RemotingCommand(ECHO, ext_fields={})).code == 0


def test_every_code_is_counted() -> None:
    router = echo_router()
    for code in (ECHO, ECHO, 9998, 9999):
        router.handle(NOBODY, RemotingCommand(code))
    assert {route.code: route.requests for route in router.routes()} == {ECHO: 2, None: 2}


def test_a_full_class_refuses_and_leaves_others_alone() -> None:
    send, query = RequestClass("send", 2), RequestClass("query", 2)
    waiting: list[LaterAnswer] = []

    def later(_: Peer, request: RemotingCommand) -> Outcome:
        waiting.append(LaterAnswer(request))
        return waiting[-1]

    router = Router()
    router.register((10, 310), later, send)
    router.register(12, later, query)
    assert isinstance(router.handle(NOBODY, RemotingCommand(10)), LaterAnswer)
    assert isinstance(router.handle(NOBODY, RemotingCommand(310)), LaterAnswer)
    answer = answer_to(router, RemotingCommand(10))
    assert (answer.code, answer.remark) == (2, "[OVERLOAD]system busy, start flow control for a while")
    assert router.handle(NOBODY, RemotingCommand(10, flag=ONEWAY_FLAG)) is None
    assert isinstance(router.handle(NOBODY, RemotingCommand(12)), LaterAnswer)
    assert (send.in_hand, send.refused, query.in_hand) == (2, 2, 1)
    waiting[0].fill(None)
    assert isinstance(router.handle(NOBODY, RemotingCommand(10)), LaterAnswer)
    waiting[1].abandon()
    assert send.in_hand == 1


def test_a_class_may_reject() -> None:
    router, send = Router(), RequestClass("send", 9)
    router.register(10, lambda _, request: request.answer(0), send)
    send.is_rejecting = True
    answer = answer_to(router, RemotingCommand(10))
    assert (answer.code, answer.remark) == (2, "[REJECTREQUEST]system busy, start flow control for a while")
    send.is_rejecting = False
    assert answer_to(router, RemotingCommand(10)).code == 0


def test_words_for_a_cleaned_queue() -> None:
    text = "broker busy, start flow control for a while, period in queue: 201ms, size of queue: 7"
    assert waited_too_long(201, 7).remark == f"[TIMEOUT_CLEAN_QUEUE]{text}"
    assert page_cache_busy(201, 7).remark == f"[PCBUSY_CLEAN_QUEUE]{text}"


def test_the_vip_port_does_not_know_what_may_be_held() -> None:
    router = echo_router()
    router.register(NOT_ON_VIP_PORT, lambda _, request: request.answer(0))
    vip = router.without(NOT_ON_VIP_PORT)
    names = "PULL_MESSAGE LITE_PULL_MESSAGE POP_MESSAGE PEEK_MESSAGE NOTIFICATION POLLING_INFO".split()
    assert {RequestCode(code).name for code in NOT_ON_VIP_PORT} == set(names)
    for code in NOT_ON_VIP_PORT:
        answer = answer_to(vip, RemotingCommand(code))
        assert (answer.code, answer.remark) == (3, f" request type {int(code)} not supported")
        assert answer_to(router, RemotingCommand(code)).code == 0
    assert answer_to(vip, RemotingCommand(ECHO)).code == 0
    assert next(router.routes()).requests == 1, "counters are shared"


def test_going_away_is_told_to_those_who_understand_it() -> None:
    router = GoingAway(echo_router())
    answer = answer_to(router, RemotingCommand(ECHO, version=476))
    assert (answer.code, answer.remark) == (1500, "please go away")
    assert answer_to(router, RemotingCommand(ECHO, version=475)).code == 0
    assert router.handle(NOBODY, RemotingCommand(ECHO, version=476, flag=ONEWAY_FLAG)) is None


async def test_a_handler_that_waits_has_a_task_with_an_owner() -> None:
    limited = RequestClass("admin", 1)
    gate = asyncio.Event()

    async def wait(request: RemotingCommand) -> Answer | None:
        await gate.wait()
        if request.body == b"refuse":
            raise NoPermission("no")
        if request.body == b"fail":
            raise OSError("disk")
        return request.answer(0)

    router = Router()
    router.register(17, lambda _, request: wait(request), limited)
    later = router.handle(NOBODY, RemotingCommand(17, 4))
    assert isinstance(later, LaterAnswer)
    assert later.is_open
    assert answer_to(router, RemotingCommand(17)).code == ResponseCode.SYSTEM_BUSY
    gate.set()
    await router.tasks.drain(1)
    assert limited.in_hand == 0
    codes = []
    for body in (b"", b"refuse", b"fail"):
        later = router.handle(NOBODY, RemotingCommand(17, body=body))
        await router.tasks.drain(1)
        assert isinstance(later, LaterAnswer)
        assert isinstance(later.frame, bytes)
        codes += [command.code for command in FrameReader().receive(later.frame)]
    assert codes == [0, 16, 1]


async def test_a_cancelled_handler_leaves_nothing_in_hand() -> None:
    limited = RequestClass("admin", 1)
    router = Router()
    router.register(17, lambda _, __: asyncio.sleep(60, None), limited)
    router.handle(NOBODY, RemotingCommand(17))
    await asyncio.sleep(0)
    assert limited.in_hand == 1
    await router.tasks.drain(0)
    assert (limited.in_hand, len(router.tasks)) == (0, 0)


def test_two_handlers_for_one_code_are_a_mistake() -> None:
    router = echo_router()
    with pytest.raises(AssertionError, match="two handlers"):
        router.register(ECHO, lambda _, request: None)
