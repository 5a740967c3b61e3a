"""How large a function, a constructor and a file may be: nothing leaves the screen, no object needs ten others.

KNOWN lists what is still above a limit; a line must go when its object has shrunk.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent.parent / "src" / "skyrocket"

LONGEST_FUNCTION = 60  # lines behind its docstring
WIDEST_CONSTRUCTOR = 8  # arguments
LONGEST_FILE = 500  # lines

KNOWN: set[str] = set()


def too_large(source: Path) -> Iterator[str]:
    for path in sorted(source.rglob("*.py")):
        text, name = path.read_text(encoding="utf-8"), path.relative_to(source).as_posix()
        if text.count("\n") > LONGEST_FILE:
            yield name
        for node in ast.walk(ast.parse(text, name)):
            if isinstance(node, ast.ClassDef):
                yield from (f"{name}:{node.name}" for each in node.body if _is_wide_constructor(each))
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _length(node) > LONGEST_FUNCTION:
                yield f"{name}:{node.name}"


def _length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def _is_wide_constructor(node: ast.stmt) -> bool:
    if not isinstance(node, ast.FunctionDef) or node.name != "__init__":
        return False
    return len(node.args.args) + len(node.args.kwonlyargs) - 1 > WIDEST_CONSTRUCTOR


def test_nothing_is_larger_than_the_limits() -> None:
    assert set(too_large(SOURCE)) == KNOWN


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("pass\n" * 500, [], id="a-file"),
        pytest.param("pass\n" * 501, ["a.py"], id="a-long-file"),
        pytest.param("def f():\n    '''D.'''\n" + "    pass\n" * 60, [], id="a-function"),
        pytest.param("async def f():\n" + "    pass\n" * 61, ["a.py:f"], id="a-long-function"),
        pytest.param("class A:\n    def __init__(self, a, b, c, d, *, e, f, g, h): ...", [], id="a-constructor"),
        pytest.param(
            "class A:\n    def __init__(self, a, b, c, d, *, e, f, g, h, i): ...", ["a.py:A"], id="a-wide-one"
        ),
    ],
)
def test_the_checker_counts(tmp_path: Path, text: str, found: list[str]) -> None:
    (tmp_path / "a.py").write_text(text)
    assert list(too_large(tmp_path)) == found
