"""One table: an exception becomes a code on one side, and the same exception on the other."""

import pytest

from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.errors import (
    MissingField,
    RequestError,
    RequestNotSupported,
    SystemFailure,
    TopicNotExist,
    UnknownAnswer,
    error_of,
)


@pytest.mark.parametrize("code", [code for code in ResponseCode if code != ResponseCode.SUCCESS])
def test_every_code_comes_back_as_itself(code: ResponseCode) -> None:
    error = error_of(code, "why", {"a": "b"})
    assert error.code == code
    assert error.remark == "why"
    assert error.ext_fields == {"a": "b"}
    assert type(error_of(error.code, error.remark)) is type(error)


def test_what_the_server_raises_the_client_sees() -> None:
    raised = TopicNotExist("topic[x] not exist, apply first please!")
    seen = error_of(raised.code, raised.remark)
    assert isinstance(seen, TopicNotExist)
    assert str(seen) == str(raised)


def test_an_unknown_code_is_kept() -> None:
    error = error_of(4711, None)
    assert isinstance(error, UnknownAnswer)
    assert error.code == 4711


def test_special_refusals_are_of_their_code_s_family() -> None:
    assert isinstance(MissingField("x"), SystemFailure)
    assert type(error_of(1, "x")) is SystemFailure
    assert RequestNotSupported.of(9999).remark == " request type 9999 not supported"
    assert RequestError("x").code == ResponseCode.SYSTEM_ERROR
