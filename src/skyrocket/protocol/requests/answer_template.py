"""Answers that a broker gives by the ten thousand, put together from constant pieces.

    SEND_ANSWER = AnswerTemplate(SendMessageAnswer, ("queue_id", "transaction_id", "msg_id", "queue_offset"),
                                 constants={"region": "DefaultRegion", "trace_on": "true"})
    frame = SEND_ANSWER.head(opaque, 0, queue_id, transaction_id, msg_id, queue_offset)

`head` gives the bytes that `frames.encode_head` gives for the same answer with a JSON header, at a fraction of its
cost. Its arguments after opaque and size of the body are the values of the attributes, in the order given. Texts are
escaped, which costs a look at each of their characters: `formats` says how to write those that need none.

    formats={"transaction_id": "{}", "msg_id": "7F00000100002A9F{:016X}"}
"""

from collections.abc import Callable, Mapping, Sequence
from struct import Struct
from typing import Any

import orjson

from skyrocket.protocol.codes import OUR_VERSION, LanguageCode, ResponseCode
from skyrocket.protocol.command import RESPONSE_FLAG
from skyrocket.protocol.java_order import java_map_order
from skyrocket.protocol.requests.header import Header

_PREFIX = Struct(">iI")
_PREFIXES = [_PREFIX.pack(4 + size, size) for size in range(1024)]  # of frames without a body
_NUMBERS = ("int", "long")


class AnswerTemplate:
    """One shape of answer: which fields vary, and what the others are."""

    __slots__ = ("head",)

    head: Callable[..., bytes]  # (opaque, body_size, *values) → lengths and header of the frame

    def __init__(
        self,
        answer: type[Header],
        attributes: Sequence[str],
        *,
        constants: Mapping[str, str] | None = None,
        code: int = ResponseCode.SUCCESS,
        remark: str | None = None,
        formats: Mapping[str, str] | None = None,
        language: LanguageCode = LanguageCode.JAVA,
        version: int = OUR_VERSION,
    ) -> None:
        constants, formats = constants or {}, formats or {}
        fields = {field.name: field for field in answer.wire_fields if field.attribute in {*attributes, *constants}}
        assert len(fields) == len(attributes) + len(constants), "an attribute that the answer does not have"
        pieces = ['{"code":', str(int(code)), ',"extFields":{']
        between = ""
        for name in java_map_order(fields, answer.ext_capacity):
            field = fields[name]
            value = constants.get(field.attribute)
            if value is not None:
                shown = _literal(value)
            elif field.attribute in formats:
                shown = _formatted(field.attribute, formats[field.attribute])
            else:
                shown = _expression(field.attribute, field.kind)
            pieces += [f'{between}"{name}":"', shown, '"']
            between = ","
        pieces += ['},"flag":', str(RESPONSE_FLAG), ',"language":"', language.name, '","opaque":', "\0opaque\1"]
        if remark is not None:
            pieces += [',"remark":"', _literal(remark), '"']
        pieces += [',"serializeTypeCurrentRPC":"JSON","version":', str(int(version)), "}"]
        self.head = _compiled("".join(pieces), attributes)


def _literal(text: str) -> str:
    return orjson.dumps(text).decode()[1:-1]


def _expression(attribute: str, kind: str) -> str:
    """What stands for a value in the text of the template: between \\0 and \\1, which no JSON contains."""
    if kind in _NUMBERS:
        return f"\0{attribute}\1"
    # Ids are letters and digits; whatever else a client chose must be escaped.
    return f"\0{attribute} if {attribute}.isalnum() else literal({attribute})\1"


def _formatted(attribute: str, form: str) -> str:
    """A format with one place for the value, as such an expression."""
    before, _, rest = form.partition("{")
    spec, _, after = rest.partition("}")
    return f"{_literal(before)}\0{attribute}{spec}\1{_literal(after)}"


def _compiled(template: str, attributes: Sequence[str]) -> Callable[..., bytes]:
    parts = template.replace("\1", "\0").split("\0")  # text, expression, text, …
    formatted = "".join(f"{{{part}}}" if number % 2 else _in_f_string(part) for number, part in enumerate(parts))
    lines = (
        f"def head(opaque, body_size, {', '.join(attributes)}):",
        f" header = f'{formatted}'.encode()",
        " size = len(header)",
        f" if body_size or size >= {len(_PREFIXES)}:",
        "  return pack(4 + size + body_size, size) + header",
        " return prefixes[size] + header",
    )
    scope: dict[str, Any] = {"pack": _PREFIX.pack, "literal": _literal, "prefixes": _PREFIXES}
    exec("\n".join(lines), scope)  # the text is made of our own names and constants
    compiled: Callable[..., bytes] = scope["head"]
    return compiled


def _in_f_string(text: str) -> str:
    escaped = text.encode("unicode_escape").decode().replace("'", "\\'")
    return escaped.replace("{", "{{").replace("}", "}}")
