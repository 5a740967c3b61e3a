"""Signatures are those of RocketMQ's own clients, byte for byte."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.frames import FrameReader
from skyrocket.protocol.signing import Credentials, Signer, is_signed_with, signature_of
from tests.golden_wire import capture, capture_names

SECRETS = {"rocketmq": "12345678", "alice": "secret123", "admin12345": "secret12345", "alice12345": "secret12345"}
WRONGLY_SIGNED = ("acl1-49-wrong-secret", "acl2-54-wrong-secret", "acl1-49-unknown-key")

TEXTS = st.text(max_size=20)
FIELDS = st.dictionaries(TEXTS, TEXTS, max_size=8)


@pytest.mark.parametrize(
    ("fields", "body", "signature"),
    [
        ({"consumerGroup": "CG", "queueId": "3", "topic": "TopicA"}, b"body", "cxPRiSgM/+6Y1oDalRBa2IF8gQA="),
        ({"a": "PG", "b": "TopicTest"}, b"hello", "kPeHuN8vZS6OdrdL1aTymXEUBik="),
    ],
)
def test_known_requests_have_their_known_signatures(fields: dict[str, str], body: bytes, signature: str) -> None:
    command = RemotingCommand(14, ext_fields=dict(fields), body=body)
    Signer(Credentials("rocketmq2", "12345678"))(command)
    assert command.ext_fields == {**fields, "AccessKey": "rocketmq2", "Signature": signature}


def test_every_captured_request_of_a_known_user_is_signed_as_we_would_sign_it() -> None:
    seen: Counter[str] = Counter()
    for name in capture_names():
        for frame in capture(name):
            (command,) = FrameReader().receive(frame.raw)
            fields = command.ext_fields or {}
            if command.is_response or "Signature" not in fields or fields["AccessKey"] not in SECRETS:
                continue
            is_right = not name.startswith(WRONGLY_SIGNED) or frame.peer.startswith("broker->")
            secret = SECRETS[fields["AccessKey"]]
            assert (signature_of(fields, command.body, secret) == fields["Signature"]) == is_right, frame
            assert is_signed_with(command, secret) == is_right, frame
            seen[name] += 1
    assert len(seen) >= 10
    assert seen.total() > 300


def test_a_token_is_signed_too() -> None:
    command = RemotingCommand(10)
    Signer(Credentials("key", "secret", "token"))(command)
    fields = command.ext_fields or {}
    assert fields["SecurityToken"] == "token"
    assert fields["Signature"] == signature_of({"AccessKey": "key", "SecurityToken": "token"}, b"", "secret")


@given(FIELDS, st.binary(max_size=50), TEXTS, TEXTS)
def test_whoever_has_the_secret_is_believed_and_nobody_else(
    fields: dict[str, str], body: bytes, secret: str, other: str
) -> None:
    command = RemotingCommand(10, ext_fields=dict(fields), body=body)
    Signer(Credentials("key", secret))(command)
    assert is_signed_with(command, secret)
    if other.encode("utf-8", "replace").rstrip(b"\0") != secret.encode("utf-8", "replace").rstrip(b"\0"):
        assert not is_signed_with(command, other)  # HMAC itself pads keys with zeros
    command.body = body + b"!"
    assert not is_signed_with(command, secret)


@given(FIELDS, st.sampled_from(["topic", "queueId", "z"]))
def test_a_field_that_is_added_or_changed_later_breaks_the_signature(fields: dict[str, str], name: str) -> None:
    command = RemotingCommand(10, ext_fields=dict(fields))
    Signer(Credentials("key", "secret"))(command)
    assert command.ext_fields is not None
    command.ext_fields[name] = fields.get(name, "") + "x"
    assert not is_signed_with(command, "secret")


def test_a_search_by_key_is_believed_with_and_without_the_field_that_old_clients_do_not_sign() -> None:
    for leaves_out in (True, False):
        fields = {"topic": "T", "key": "k"} if leaves_out else {"topic": "T", "key": "k", "_UNIQUE_KEY_QUERY": "false"}
        command = RemotingCommand(12, ext_fields=fields)
        Signer(Credentials("key", "secret"))(command)
        fields["_UNIQUE_KEY_QUERY"] = "false"
        assert is_signed_with(command, "secret")
        assert not is_signed_with(command, "wrong")
        command.code = 10  # no other request may hide a field there
        assert is_signed_with(command, "secret") != leaves_out


def test_a_request_without_a_signature_is_not_signed() -> None:
    assert not is_signed_with(RemotingCommand(10), "secret")
    assert not is_signed_with(RemotingCommand(10, ext_fields={"AccessKey": "key", "Signature": "é"}), "secret")


def test_keys_are_in_the_order_of_java() -> None:
    # U+FF5E comes before U+1F600 as a character, behind it as UTF-16.
    fields = {"\U0001f600": "1", "～": "2"}
    assert signature_of(fields, b"", "s") == signature_of({"a": "1", "b": "2"}, b"", "s")


def test_secrets_are_in_no_repr() -> None:
    signer = Signer(Credentials("key", "hidden", "also hidden"))
    assert "hidden" not in repr(signer)
    assert "hidden" not in repr(signer.credentials)
    assert "key" in repr(signer)
