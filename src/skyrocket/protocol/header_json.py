"""The JSON form of a header: one object, keys sorted, no blanks, nothing that is null.

    {"code":0,"extFields":{…},"flag":1,"language":"JAVA","opaque":9,"remark":"…","serializeTypeCurrentRPC":"JSON",
    "version":493}

Read as liberally as Java reads: numbers may be text, the language a number, ext values numbers or booleans; single
quotes, trailing commas and raw control characters pass. Written so that the strictest client understands it.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

import orjson

from skyrocket.fastjson import FastJsonError, loads
from skyrocket.protocol.codes import LanguageCode, SerializeType
from skyrocket.protocol.command import Body, RemotingCommand
from skyrocket.protocol.errors import ProtocolError

_LANGUAGES: Final[Mapping[Any, LanguageCode | None]] = {
    **{language.name: language for language in LanguageCode},
    **{language.value: language for language in LanguageCode},
}
_JSON = SerializeType.JSON
_new = object.__new__
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,10}")
# A string in either quotes, or the rest of the text when it is never closed: a single pass even over hostile text.
_STRING = re.compile(rb"\"[^\"\\]*+(?:\\.[^\"\\]*+)*+\"?|'[^'\\]*+(?:\\.[^'\\]*+)*+'?", re.DOTALL)
_MAX_LIBERAL_SIZE = 128 << 10  # read in Python, so bounded: properties of a message have at most 32 KiB
_CONTROL = re.compile(rb"[\x00-\x1f]")


def decode(header: bytes, body: Body) -> RemotingCommand:
    """The command of a header; raises ProtocolError where Java would close the connection."""
    try:
        fields = orjson.loads(header)
    except orjson.JSONDecodeError:
        fields = _liberally(header)
    if fields.__class__ is not dict:
        raise ProtocolError("the header is not a JSON object")
    get = fields.get
    try:  # what nearly every peer writes; all else goes the careful way
        code, opaque, flag, version = fields["code"], fields["opaque"], fields["flag"], fields["version"]
        language = _LANGUAGES[fields["language"]]
        if (code | opaque | flag | version) >> 31:  # a negative or too large one among them
            raise KeyError
    except (KeyError, TypeError):
        code, opaque, flag, version = (_int32(get(name)) for name in ("code", "opaque", "flag", "version"))
        language = _language(get("language", "JAVA"))
    ext_fields = get("extFields")
    if ext_fields is not None:
        try:
            "".join(ext_fields.values())  # the fastest way to see that all are text
        except (TypeError, AttributeError):
            ext_fields = _texts(ext_fields)
    remark = get("remark")
    command = _new(RemotingCommand)  # what __init__ does, without the call: this is done for every message
    command.code = code
    command.opaque = opaque
    command.flag = flag
    command.ext_fields = ext_fields
    command.body = body
    command.remark = remark if remark is None or remark.__class__ is str else _text(remark)
    command.language = language
    command.version = version
    command.serialize_type = _JSON
    return command


def encode(command: RemotingCommand) -> bytes:
    """The header's bytes; ext fields stand in the order of the dict."""
    header: dict[str, object] = {"code": command.code}
    if command.ext_fields is not None:
        header["extFields"] = command.ext_fields
    header["flag"] = command.flag
    if command.language is not None:
        header["language"] = command.language.name
    header["opaque"] = command.opaque
    if command.remark is not None:
        header["remark"] = command.remark
    header["serializeTypeCurrentRPC"] = "JSON"
    header["version"] = command.version
    try:
        return orjson.dumps(header)
    except TypeError:
        return orjson.dumps(_without_lone_surrogates(header))


def _liberally(header: bytes) -> Any:
    if len(header) > _MAX_LIBERAL_SIZE:
        raise ProtocolError(f"a header of {len(header)} bytes that is not strict JSON")
    try:
        return loads(_STRING.sub(_escaped, header))
    except FastJsonError as error:
        raise ProtocolError(f"the header is not JSON: {error}") from None


def _escaped(string: re.Match[bytes]) -> bytes:
    return _CONTROL.sub(lambda sign: b"\\u%04x" % sign[0][0], string[0])


def _int32(value: object) -> int:
    if value is None:
        return 0
    if isinstance(value, str) and _WHOLE_NUMBER.fullmatch(value):
        value = int(value)
    if not isinstance(value, int) or not -(1 << 31) <= value < 1 << 31:
        raise ProtocolError("a number of the header is none, or has more than 32 bits")
    return int(value)


def _language(value: object) -> LanguageCode | None:
    # RocketMQ: the number of a language counts too, and an unknown one is null, not an error.
    return _LANGUAGES.get(value) if isinstance(value, str | int) else None


def _texts(ext_fields: object) -> dict[str, str]:
    if not isinstance(ext_fields, dict):
        raise ProtocolError("extFields is not a JSON object")
    return {_text(name): _text(value) for name, value in ext_fields.items() if value is not None}


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        raise ProtocolError("a value of the header is not text, a number or a boolean") from None


def _without_lone_surrogates(value: Any) -> Any:
    if isinstance(value, dict):
        return {_without_lone_surrogates(name): _without_lone_surrogates(part) for name, part in value.items()}
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
