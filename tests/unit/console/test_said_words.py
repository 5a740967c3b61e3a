"""What the server says on the pages: every template of a finding, a refusal or a change made has a Chinese one."""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from skyrocket.client.core.errors import BrokerRefused, ClientError
from skyrocket.client.doctor.finding import warning
from skyrocket.console.telling.told_error import told
from skyrocket.console.web import app  # noqa: F401 - it imports whatever the console may refuse with
from skyrocket.model.words import Phrase, phrase_of, said, said_of
from skyrocket.protocol.errors import RequestError
from tests import ROOT

SOURCE = ROOT / "src" / "skyrocket"
CONSOLE = SOURCE / "console"
# Whoever makes findings: each text of a function there is a template.
FINDERS = [
    *sorted((SOURCE / "client" / "doctor").glob("*_checks.py")),
    CONSOLE / "cluster" / "findings.py",
]
REFUSERS = [
    *sorted(CONSOLE.rglob("*.py")),
    SOURCE / "client" / "core" / "names.py",
    *sorted((SOURCE / "client" / "admin").glob("*.py")),
]
SAID = dict(
    re.findall(r'^  "((?:[^"\\]|\\.)*)": "(.+)",$', (CONSOLE / "static" / "said_zh.js").read_text("utf-8"), re.M)
)


def _kinds(kind: type[Exception]) -> Iterator[str]:
    yield kind.__name__
    for each in kind.__subclasses__():
        yield from _kinds(each)


REFUSALS = frozenset(_kinds(ClientError))


def _sentences(node: ast.AST) -> Iterator[str]:
    """Every text with a word and a space, but no docstring and no form for one; raises where it is an f-string."""
    for each in _below(node):
        if isinstance(each, ast.JoinedStr) and any(_is_sentence(part) for part in each.values):
            raise AssertionError(f"line {each.lineno}: {ast.unparse(each)} cannot be translated; give a template")
        if isinstance(each, ast.Constant) and _is_sentence(each):
            yield str(each.value)


def _below(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for each in ast.iter_child_nodes(node):
        if isinstance(node, ast.Expr) and isinstance(each, ast.Constant):
            continue
        if isinstance(node, ast.Call) and _called(node) == "said_of" and each is node.args[1]:
            continue
        yield from _below(each)


def _is_sentence(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and bool(re.search(r"[a-z] | .*[a-z]", node.value))
    )


def _called(call: ast.Call) -> str:
    """`said(…)`, `NotFound(…)`, `(NotFound if broker else ClientError)(…)`."""
    func = call.func.body if isinstance(call.func, ast.IfExp) else call.func
    return func.id if isinstance(func, ast.Name) else ""


def _of_findings(path: Path) -> Iterator[str]:
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            yield from _sentences(node)


def _of_refusals(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        if _called(node) == "said_of" and isinstance(node.args[2], ast.Constant):
            yield str(node.args[2].value)
        elif _called(node) == "Done" and isinstance(node.args[0], ast.Constant | ast.JoinedStr):
            raise AssertionError(f"line {node.lineno}: {ast.unparse(node)} cannot be translated; give a template")
        elif _called(node) in REFUSALS | {"said"}:
            if isinstance(node.args[0], ast.Constant):
                template = str(node.args[0].value)
                assert _fields(template) == {each.arg for each in node.keywords}, f"line {node.lineno}: {template}"
                yield template
            elif any(_is_sentence(each) for each in ast.walk(node.args[0])):
                raise AssertionError(f"line {node.lineno}: {ast.unparse(node)} cannot be translated; give a template")


def _known_by(templates: Iterable[str]) -> set[str]:
    return {phrase_of(said(each, **dict.fromkeys(_fields(each), _Any()))).template for each in templates}


class _Any:
    """A value that takes every layout."""

    def __format__(self, layout: str) -> str:
        return ""


def _fields(template: str) -> set[str]:
    return set(re.findall(r"{(\w+)", template))


def _all_templates() -> set[str]:
    found = {template for path in FINDERS for template in _of_findings(path)}
    found |= {template for path in REFUSERS for template in _of_refusals(ast.parse(path.read_text("utf-8")))}
    by_broker = BrokerRefused("127.0.0.1:10911", RequestError("no"), "deleting a topic")
    return _known_by(found) | {told(by_broker).phrase.template}


def test_every_finding_refusal_and_change_that_was_made_has_a_chinese_template() -> None:
    templates = _all_templates()
    assert {
        "{n} messages wait and no client runs",
        "stop some, or give the topic more queues",
        "log in first: changes, and accounts, are not for everybody",
        "topic {name} was changed on {brokers}",
        "{n} messages were sent again",
        "{kind} {name} contains {wrong}: only letters, digits and % | _ - are allowed",
    } <= templates
    assert templates - SAID.keys() == set()


def test_no_chinese_template_is_left_of_what_nobody_says_any_more() -> None:
    assert SAID.keys() - _all_templates() == set()


def test_both_languages_fill_in_the_same_values() -> None:
    assert [english for english, chinese in SAID.items() if _fields(english) != _fields(chinese)] == []


def test_an_f_string_where_a_template_should_be_is_found() -> None:
    with pytest.raises(AssertionError, match=r"line 1.*cannot be translated"):
        list(_of_refusals(ast.parse('raise BadInput(f"there is no rule {rule}")')))
    with pytest.raises(AssertionError, match=r"line 1.*cannot be translated"):
        list(_sentences(ast.parse('what = f"its timer is {behind} s behind"')))
    with pytest.raises(AssertionError, match=r"line 1.*cannot be translated"):
        list(_of_refusals(ast.parse('return Done(f"topic {topic} was deleted")')))


def test_a_refusal_without_one_of_its_values_is_found() -> None:
    with pytest.raises(AssertionError, match="line 1: there is no rule"):
        list(_of_refusals(ast.parse('raise BadInput("there is no rule {rule}", name=1)')))


def test_a_sentence_is_a_text_that_knows_its_template_and_its_values_as_they_are_shown() -> None:
    queues = said_of(1, "{n:,} queue", "{n:,} queues")
    sentence = said("{clients:,} clients of {group!r} share {queues}", clients=1234, group="shop", queues=queues)
    assert sentence == "1,234 clients of 'shop' share 1 queue"
    inner = Phrase("{n} queues", {"n": "1"})
    values: dict[str, str | Phrase] = {"clients": "1,234", "group": "'shop'", "queues": inner}
    assert phrase_of(sentence) == Phrase("{clients} clients of {group} share {queues}", values)
    assert phrase_of("no values") == Phrase("no values", {})


def test_values_are_never_taken_for_fields() -> None:
    assert said("there is no topic {topic}", topic="{group}") == "there is no topic {group}"
    assert str(ClientError("a text with {braces} and no values")) == "a text with {braces} and no values"


def test_what_and_remedy_of_a_finding_are_templates_of_the_same_values() -> None:
    found = warning("code", "shop", "it waits {waits:.0f} ms", "look at {where}", waits=12.3)
    assert (found.what, found.remedy) == ("it waits 12 ms", "look at shop")
    assert phrase_of(found.what) == Phrase("it waits {waits} ms", {"waits": "12"})
