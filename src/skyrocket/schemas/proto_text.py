"""A .proto file as descriptors, without protoc: what is needed to read messages; options and services are passed over.

Names of types stay as they were written: the library that takes the descriptors looks them up from the inside out, as
protoc does, and finds out whether they are messages or enums. Groups and editions are refused.
"""

import re
from typing import Any, Final

from skyrocket.errors import ConfigError

_TOKENS: Final = re.compile(
    r"""\s+ | //[^\n]* | /\*.*?\*/
    | (?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    | (?P<word>\.?[A-Za-z_][\w.]*)
    | (?P<number>[+-]?(?:0[xX][0-9a-fA-F]+|\d[\w.]*(?:[eE][+-]\d+)?))
    | (?P<sign>[{}\[\]()<>=;,:+-]|/)""",
    re.X | re.S,
)
_SCALARS: Final = {
    "double": 1, "float": 2, "int64": 3, "uint64": 4, "int32": 5, "fixed64": 6, "fixed32": 7, "bool": 8, "string": 9,
    "bytes": 12, "uint32": 13, "sfixed32": 15, "sfixed64": 16, "sint32": 17, "sint64": 18,
}  # fmt: skip
_MESSAGE: Final = 11
_LABELS: Final = {"optional": 1, "required": 2, "repeated": 3}
_PASSED_OVER: Final = ("option", "reserved", "extensions", "extend", "service")
_MOST_SIGNS: Final = 1024 * 1024
_DEEPEST: Final = 32


def file_descriptor(text: str, name: str) -> Any:
    """A FileDescriptorProto of this name; raises ConfigError that says where the text is wrong."""
    return _Reader(text, name).file()


class _Reader:
    """Goes through the words of a file once."""

    def __init__(self, text: str, name: str) -> None:
        self._name = name
        self._words = self._cut(text)
        self._at = 0
        self._is_proto3 = False

    def _cut(self, text: str) -> list[tuple[str, int]]:
        if len(text) > _MOST_SIGNS:
            raise ConfigError(f"{self._name} is longer than a .proto file may be: {len(text):,} signs")
        words, at, line = [], 0, 1
        while at < len(text):
            match = _TOKENS.match(text, at)
            if match is None:
                raise ConfigError(f"{self._name}:{line}: {text[at]!r} has no place in a .proto file")
            if match.lastgroup is not None:
                words.append((match[0], line))
            line += match[0].count("\n")
            at = match.end()
        return words

    # ── words ────────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def _next(self) -> str:
        return self._words[self._at][0] if self._at < len(self._words) else ""

    def _take(self, wanted: str = "") -> str:
        word = self._next
        if not word or (wanted and word != wanted):
            raise self._wrong(f"{wanted!r} is expected" if wanted else "the file ends too early")
        self._at += 1
        return word

    def _wrong(self, why: str) -> ConfigError:
        line = self._words[min(self._at, len(self._words) - 1)][1] if self._words else 1
        return ConfigError(f"{self._name}:{line}: {why}{f', not {self._next!r}' if self._next else ''}")

    def _number(self) -> int:
        try:
            return int(self._take(), 0)
        except ValueError:
            self._at -= 1
            raise self._wrong("a number is expected") from None

    def _pass_over(self) -> None:
        """To the end of a statement or of its block."""
        depth = 0
        while True:
            word = self._take()
            depth += (word in "{[") - (word in "}]")
            if depth == 0 and (word == ";" or (word == "}" and self._next != ";")):
                return

    # ── statements ───────────────────────────────────────────────────────────────────────────────────────────────────

    def file(self) -> Any:
        """All of it."""
        from google.protobuf import descriptor_pb2

        file = descriptor_pb2.FileDescriptorProto(name=self._name)
        while self._next:
            word = self._take()
            if word == "syntax":
                self._take("=")
                file.syntax = self._take().strip("\"'")
                self._is_proto3 = file.syntax == "proto3"
                self._take(";")
            elif word == "package":
                file.package = self._take()
                self._take(";")
            elif word == "import":
                if self._next in ("public", "weak"):
                    self._take()
                file.dependency.append(self._take().strip("\"'"))
                self._take(";")
            elif word == "message":
                self._message(file.message_type.add(), 0)
            elif word == "enum":
                self._enum(file.enum_type.add())
            elif word in _PASSED_OVER:
                self._pass_over()
            elif word == "edition":
                raise self._wrong("editions are not read here: give descriptors, by `protoc --descriptor_set_out=FILE`")
            elif word != ";":
                self._at -= 1
                raise self._wrong("message, enum, import, package or option is expected")
        return file

    def _message(self, message: Any, level: int) -> None:
        if level > _DEEPEST:
            raise self._wrong(f"messages nest deeper than {_DEEPEST} levels")
        message.name = self._take()
        self._take("{")
        optional: list[Any] = []
        while (word := self._take()) != "}":
            if word == "message":
                self._message(message.nested_type.add(), level + 1)
            elif word == "enum":
                self._enum(message.enum_type.add())
            elif word == "oneof":
                self._one_of(message)
            elif word in _PASSED_OVER:
                self._pass_over()
            elif word != ";":
                self._at -= 1
                self._field(message, optional)
        for field in optional:  # of proto3: each is a choice of one, behind all others
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{field.name}")

    def _one_of(self, message: Any) -> None:
        place = len(message.oneof_decl)
        message.oneof_decl.add(name=self._take())
        self._take("{")
        while (word := self._take()) != "}":
            if word == "option":
                self._pass_over()
            elif word != ";":
                self._at -= 1
                self._field(message, []).oneof_index = place

    def _field(self, message: Any, optional: list[Any]) -> Any:
        label = _LABELS[self._take()] if self._next in _LABELS else 0
        kind = self._take()
        if kind == "group":
            raise self._wrong("groups are not read here: give descriptors, by `protoc --descriptor_set_out=FILE`")
        pair = self._map_types() if kind == "map" and self._next == "<" else None
        field = message.field.add(label=_LABELS["repeated"] if pair else label or _LABELS["optional"])
        field.name = self._take()
        self._take("=")
        field.number = self._number()
        if self._next == "[":
            self._take()
            while self._take() != "]":
                pass
        self._take(";")
        if pair is None:
            _set_type(field, kind)
        else:
            _map_entry(message, field, *pair)
        if label == _LABELS["optional"] and self._is_proto3:
            field.proto3_optional = True
            optional.append(field)
        return field

    def _map_types(self) -> tuple[str, str]:
        self._take("<")
        key = self._take()
        self._take(",")
        value = self._take()
        self._take(">")
        return key, value

    def _enum(self, enum: Any) -> None:
        enum.name = self._take()
        self._take("{")
        while (word := self._take()) != "}":
            if word == "option" and self._next != "=":
                if self._words[self._at][0] == "allow_alias":
                    enum.options.allow_alias = True
                self._pass_over()
            elif word == "reserved" and self._next != "=":
                self._pass_over()
            elif word != ";":
                self._take("=")
                enum.value.add(name=word, number=self._number())
                if self._next == "[":
                    while self._take() != "]":
                        pass
                self._take(";")


def _set_type(field: Any, kind: str) -> None:
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
    else:
        field.type_name = kind


def _map_entry(message: Any, field: Any, key: str, value: str) -> None:
    entry = message.nested_type.add(
        name="".join(part[:1].upper() + part[1:] for part in field.name.split("_")) + "Entry"
    )
    entry.options.map_entry = True
    for number, (name, kind) in enumerate((("key", key), ("value", value)), 1):
        _set_type(entry.field.add(name=name, number=number, label=_LABELS["optional"]), kind)
    field.type, field.type_name = _MESSAGE, entry.name
