"""The words of an SQL92 filter, read one after the other.

Only as far as the parser asks: RocketMQ ignores whatever follows a complete expression, be it no words at all.
"""

import re
from enum import Enum
from typing import Final, NamedTuple

_SHOWN: Final = 100  # signs of a line before and behind the place


class SqlError(ValueError):
    """An expression that cannot be used; the text shows where."""

    def __init__(self, reason: str, expression: str, at: int) -> None:
        line_start = expression.rfind("\n", 0, at) + 1
        shown_start = max(line_start, at - _SHOWN)
        line = expression[shown_start : at + _SHOWN].partition("\n")[0]
        where = f"line {expression.count(chr(10), 0, at) + 1}, column {at - line_start + 1}"
        super().__init__(f"{reason} at {where}\n  {line}\n  {' ' * (at - shown_start)}^")
        self.reason = reason
        self.position = at


class SqlTooLarge(SqlError):
    """An expression that costs more than one consumer may ask for."""


class Kind(Enum):
    """What a word is."""

    KEYWORD = "keyword"
    SIGN = "sign"
    INTEGER = "integer"
    DECIMAL = "decimal number"
    STRING = "string"
    NAME = "name"
    END = "end of the expression"


class Word(NamedTuple):
    """One word; the text of keywords is in capitals, that of strings without their quotes."""

    kind: Kind
    text: str
    at: int
    mark: str | None = None  # the text of a keyword or sign, None of others

    def __str__(self) -> str:
        return self.kind.value if self.kind is Kind.END else f"{self.text!r}"


KEYWORDS: Final = frozenset(
    ("NOT", "AND", "OR", "BETWEEN", "IN", "TRUE", "FALSE", "NULL", "IS", "CONTAINS", "STARTSWITH", "ENDSWITH")
)
_BLANK: Final = re.compile(r"(?:[ \t\n\r\f]|--[^\n\r]*(?:\r\n|\n|\r)|/\*[\s\S]*?\*/)*")
_WORD: Final = re.compile(
    r"(?P<DECIMAL>[0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)"
    r"|(?P<INTEGER>[1-9][0-9]*[lL]?|0)"
    r"|(?P<STRING>'(?:[^']|'')*')"
    r"|(?P<NAME>[A-Za-z_$][A-Za-z0-9_$]*)"
    r"|(?P<SIGN><>|>=|<=|[=<>(),+-])"
)


class Words:
    """The words of one expression, with a look at the two that come next."""

    def __init__(self, expression: str) -> None:
        self.expression = expression
        self._at = 0
        self._ahead: list[Word] = []

    def peek(self, distance: int = 0) -> Word:
        """A word that comes, without taking it."""
        while len(self._ahead) <= distance:
            self._ahead.append(self._read())
        return self._ahead[distance]

    def take(self) -> Word:
        """The next word."""
        self.peek()
        return self._ahead.pop(0)

    def comes(self, *texts: str) -> bool:
        """Whether these keywords or signs come next."""
        if (self._ahead[0] if self._ahead else self.peek()).mark != texts[0]:
            return False
        return all(self.peek(number).mark == text for number, text in enumerate(texts))

    def take_if(self, *texts: str) -> Word | None:
        """The last of these keywords or signs when all of them come, and they are taken."""
        if not self.comes(*texts):
            return None
        for _ in texts[1:]:
            self.take()
        return self.take()

    def expect(self, text: str) -> Word:
        """The next word, which must be this one."""
        word = self.take()
        if word.mark != text:
            raise self.error(f"{text} expected, {word} found", word)
        return word

    def error(self, reason: str, word: Word) -> SqlError:
        return SqlError(reason, self.expression, word.at)

    def _read(self) -> Word:
        blank = _BLANK.match(self.expression, self._at)
        assert blank is not None
        at = blank.end()
        if at == len(self.expression):
            return Word(Kind.END, "", at)
        found = _WORD.match(self.expression, at)
        if found is None:
            what = "a string that is never closed" if self.expression[at] == "'" else f"{self.expression[at]!r}"
            raise SqlError(f"{what} is not part of the language", self.expression, at)
        self._at = found.end()
        text = found.group()
        match found.lastgroup:
            case "NAME" if text.upper() in KEYWORDS:
                return Word(Kind.KEYWORD, text.upper(), at, text.upper())
            case "STRING":
                return Word(Kind.STRING, text[1:-1].replace("''", "'"), at)
            case "SIGN":
                return Word(Kind.SIGN, text, at, text)
            case kind:
                assert kind is not None
                return Word(Kind[kind], text, at)
