"""Numbers with their words, and that sentences for operators use them."""

import ast
import re
from collections.abc import Iterator

import pytest

from skyrocket.model.words import counted
from tests import ROOT

SOURCE = ROOT / "src" / "skyrocket"
# What operators read: the command line, the doctor, and what the console's endpoints say.
FOR_OPERATORS = ("cli", "client/doctor", "client/admin", "console")
PLURAL = re.compile(r" (\w+ )?[a-z]+s\b")


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 brokers"),
        (1, "1 broker"),
        (2, "2 brokers"),
        (12_345, "12,345 brokers"),
    ],
)
def test_a_number_has_the_form_of_its_word(count: int, words: str) -> None:
    assert counted(count, "broker") == words


def test_words_that_do_not_end_in_s_are_given_both_ways() -> None:
    assert counted(1, "message waits", "messages wait") == "1 message waits"
    assert counted(2, "message waits", "messages wait") == "2 messages wait"


def bare_plurals(text: str) -> Iterator[int]:
    """Lines in which a length stands before a plural, whatever the length is."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.JoinedStr):
            for number, words in zip(node.values, node.values[1:], strict=False):
                if _is_length(number) and isinstance(words, ast.Constant) and PLURAL.match(str(words.value)):
                    yield node.lineno


def _is_length(node: ast.expr) -> bool:
    value = node.value if isinstance(node, ast.FormattedValue) else None
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "len"


def test_a_length_before_a_plural_is_seen() -> None:
    assert list(bare_plurals('x = f"on {len(places)} brokers"')) == [1]
    assert list(bare_plurals('x = f"on {counted(len(places), 1)} brokers and {len(a)} more"')) == []


def test_no_sentence_for_operators_says_1_brokers() -> None:
    found = {
        f"{path.relative_to(SOURCE)}:{line}"
        for folder in FOR_OPERATORS
        for path in sorted((SOURCE / folder).rglob("*.py"))
        for line in bare_plurals(path.read_text(encoding="utf-8"))
    }
    assert found == set()
