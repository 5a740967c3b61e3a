"""The compact form of a header.

    2 code  1 language  2 version  4 opaque  4 flag  4 + n remark  4 + n ext fields
    ext field: 2 + n name  4 + n value, repeated to the end

Quirks that are kept: an empty text counts as none, so a field with an empty value is not there; of two fields with one
name the last counts; a code above 32767 does not fit, its frame must have a JSON header.
"""

from struct import Struct
from struct import error as struct_error

from skyrocket.protocol.codes import LanguageCode
from skyrocket.protocol.command import Body, RemotingCommand
from skyrocket.protocol.errors import ProtocolError

_FIXED = Struct(">hBhiii")  # code, language, version, opaque, flag, length of the remark
_EXT_SIZE = Struct(">i")
_NAME_SIZE = Struct(">h")
_VALUE_SIZE = Struct(">i")

_LANGUAGES = {language.value: language for language in LanguageCode}
_MIN, _MAX = -(1 << 15), (1 << 15) - 1


def can_carry(command: RemotingCommand) -> bool:
    """Whether a command survives this form."""
    # Comparisons, not `in range(…)`: a range is searched number by number for an enum.
    return _MIN <= command.code <= _MAX and _MIN <= command.version <= _MAX


def decode(header: bytes, body: Body) -> RemotingCommand:
    """The command of a header; raises ProtocolError where lengths contradict each other."""
    try:
        code, language, version, opaque, flag, remark_size = _FIXED.unpack_from(header)
        remark, at = _text(header, _FIXED.size, remark_size)
        ext_size = _EXT_SIZE.unpack_from(header, at)[0]
        at += _EXT_SIZE.size
        end = at + ext_size
        if ext_size < 0 or end > len(header):
            raise ProtocolError(f"{ext_size} bytes of ext fields in a header of {len(header)}")
        ext_fields: dict[str, str] | None = {} if ext_size else None
        while at < end:
            name, at = _text(header, at + 2, _NAME_SIZE.unpack_from(header, at)[0])
            value, at = _text(header, at + 4, _VALUE_SIZE.unpack_from(header, at)[0])
            if name and ext_fields is not None:
                if value:
                    ext_fields[name] = value
                else:
                    ext_fields.pop(name, None)
    except struct_error:
        raise ProtocolError("the header ends within a field") from None
    except UnicodeDecodeError:
        raise ProtocolError("the header has text that is not UTF-8") from None
    if at > end:
        raise ProtocolError("the last ext field is longer than all of them")
    return RemotingCommand(
        code, opaque, flag, ext_fields, body, remark or None, _LANGUAGES.get(language), version
    ).as_binary()


def encode(command: RemotingCommand) -> bytes:
    """The header's bytes; ext fields stand in the order of the dict."""
    assert can_carry(command)
    language = LanguageCode.OTHER if command.language is None else command.language
    remark = _bytes(command.remark or "")
    parts: list[bytes] = []
    for name, value in (command.ext_fields or {}).items():
        name_bytes, value_bytes = _bytes(name), _bytes(value)
        parts += (_NAME_SIZE.pack(len(name_bytes)), name_bytes, _VALUE_SIZE.pack(len(value_bytes)), value_bytes)
    ext = b"".join(parts)
    fixed = _FIXED.pack(command.code, language, command.version, command.opaque, command.flag, len(remark))
    return b"".join((fixed, remark, _EXT_SIZE.pack(len(ext)), ext))


def _text(header: bytes, at: int, size: int) -> tuple[str, int]:
    end = at + size
    if size < 0 or end > len(header):
        raise ProtocolError(f"a text of {size} bytes in a header of {len(header)}")
    return header[at:end].decode(), end


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")
