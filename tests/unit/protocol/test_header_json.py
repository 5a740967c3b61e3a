"""JSON headers: what Java writes, and all that it reads."""

import json

import pytest

from skyrocket.protocol import frames, header_json
from skyrocket.protocol.codes import LanguageCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import ProtocolError
from tests.unit.protocol.samples import COMMANDS

SEND_HEADER = (
    rb'{"code":310,"extFields":{"a":"PG","b":"TopicA","c":"TBW102","d":"4","e":"1","f":"0","g":"1700000000000",'
    rb'"h":"0","i":"TAGS\u0001TagA\u0002","j":"0","k":"false","m":"false","n":"broker-a"},"flag":0,"language":"JAVA",'
    rb'"opaque":5,"serializeTypeCurrentRPC":"JSON","version":479}'
)


def decode(text: str | bytes) -> RemotingCommand:
    return header_json.decode(text if isinstance(text, bytes) else text.encode(), b"")


def test_a_request_is_the_bytes_that_java_writes() -> None:
    frame = frames.encode(COMMANDS[0])
    assert frame == bytes.fromhex("0000011600000110") + SEND_HEADER + b"hi"


def test_an_answer_is_the_bytes_that_java_writes() -> None:
    header = b'{"code":0,"flag":1,"language":"JAVA","opaque":9,"serializeTypeCurrentRPC":"JSON","version":479}'
    assert frames.encode(RemotingCommand(0, 9, 1, version=479)) == bytes.fromhex("000000630000005f") + header


def test_absent_empty_and_filled_ext_fields_stay_apart() -> None:
    for ext_fields in (None, {}, {"a": ""}):
        command = RemotingCommand(1, 2, ext_fields=ext_fields)
        assert decode(header_json.encode(command)) == command


def test_numbers_and_booleans_as_ext_values_become_text() -> None:
    command = decode('{"code":310,"opaque":1,"extFields":{"d":4,"k":true,"m":false,"x":1.5,"n":null,"s":"t"}}')
    assert command.ext_fields == {"d": "4", "k": "true", "m": "false", "x": "1.5", "s": "t"}


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ('"GO"', LanguageCode.GO),
        ("9", LanguageCode.GO),
        ('"KLINGON"', None),
        ("77", None),
        ("null", None),
        ("[]", None),
    ],
)
def test_a_language_is_a_name_or_a_number_and_may_be_unknown(text: str, language: LanguageCode | None) -> None:
    assert decode(f'{{"code":1,"opaque":2,"flag":0,"version":1,"language":{text}}}').language is language


def test_what_is_missing_has_its_default() -> None:
    assert decode('{"code":34,"opaque":7}') == RemotingCommand(34, 7, version=0)
    assert decode("{}") == RemotingCommand(0, 0, version=0)
    assert decode('{"code":null,"opaque":null,"flag":null,"remark":null,"extFields":null}').code == 0


def test_numbers_may_be_text_and_negative() -> None:
    command = decode('{"code":"34","opaque":"-5","flag":"2","version":"+121"}')
    assert (command.code, command.opaque, command.flag, command.version) == (34, -5, 2, 121)
    assert decode('{"code":-7,"opaque":-2147483648}').opaque == -(1 << 31)


def test_unknown_keys_are_ignored_and_the_last_of_equal_keys_counts() -> None:
    command = decode('{"code":1,"code":2,"opaque":3,"x":{"y":[1]},"extFields":{"a":"1","a":"2"}}')
    assert command.code == 2
    assert command.ext_fields == {"a": "2"}


def test_what_only_fastjson_reads_is_read() -> None:
    raw_controls = b'{"code":1,"opaque":2,"extFields":{"i":"TAGS\x01a\x02\n\tb","q":"\\"\x01\\\\"}}'
    assert decode(raw_controls).ext_fields == {"i": "TAGS\x01a\x02\n\tb", "q": '"\x01\\'}
    assert decode("{'code':1,'opaque':2,'remark':'it\\'s',}").remark == "it's"
    assert decode("{code:1,\n\topaque:2,extFields:{a:'\"',},}").ext_fields == {"a": '"'}


def test_a_hostile_header_costs_no_more_than_its_length() -> None:
    for count in (60_000, 1_000_000):
        for text in (b'"' + b'\\"' * count, b"'" * (count + 1), b'{"a":"' + b"\x01\\" * count, b"{" * count):
            with pytest.raises(ProtocolError):
                decode(text)


def test_remarks_may_be_empty_or_no_text() -> None:
    assert decode('{"code":1,"opaque":2,"remark":""}').remark == ""
    assert decode('{"code":1,"opaque":2,"remark":7}').remark == "7"


def test_lone_surrogates_do_not_stop_an_answer() -> None:
    command = RemotingCommand(1, 2, remark="\ud800", ext_fields={"a": "\udfff"})
    assert json.loads(header_json.encode(command))["extFields"] == {"a": "?"}
