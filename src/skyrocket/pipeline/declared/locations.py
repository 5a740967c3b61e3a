"""Where the parts of a pipeline stand in their file: a part is a path, as ("steps", "paid", "sql")."""

import ast
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from skyrocket.pipeline.declared.plan import Pipeline
from skyrocket.pipeline.declared.problems import Location

Part = tuple[str, ...]
KEY: Final = ":"
"""Behind an option: its name, not its value."""


class Locations(Protocol):
    def of(self, part: Part, index: int = 0) -> Location:
        """The location of a part, or of one character of its text; of what holds it when it is not written down."""


class YamlLocations:
    """As they were noted while the file was read."""

    def __init__(self, file: str, noted: Mapping[Part, Callable[[int], Location]]) -> None:
        self._file = file
        self._noted = noted

    def of(self, part: Part, index: int = 0) -> Location:
        if part in self._noted:
            return self._noted[part](index)
        if part[:1] == ("sources",) and part[2:3] == ("decode",) and part[2:3] in self._noted:
            return self.of(part[2:], index)  # the one that all sources share
        return self.of(part[:-1]) if part else Location(self._file, 1, 1)


class PythonLocations:
    """Of a Python file: the string itself where the file has it, else the assignment to `pipeline`."""

    def __init__(self, file: str, source: str, pipeline: Pipeline) -> None:
        self._file = file
        tree = ast.parse(source)
        self._strings: dict[str, ast.Constant] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                self._strings.setdefault(node.value, node)
        self._assignment = next((node for node in tree.body if _assigns_pipeline(node)), None)
        self._lines = source.splitlines()
        self._pipeline = pipeline

    def of(self, part: Part, index: int = 0) -> Location:
        for text in (self._text(part), *reversed(part)):
            if text is not None and text in self._strings:
                return self._inside(self._strings[text], index if text == self._text(part) else 0)
        if self._assignment is None:
            return Location(self._file, 1, 1)
        return Location(self._file, self._assignment.lineno, self._assignment.col_offset + 1)

    def _text(self, part: Part) -> str | None:
        match part:
            case (*_, last) if last == KEY:
                return None
            case ("steps", name, "sql"):
                return next((step.sql for step in self._pipeline.steps if step.name == name), None)
            case ("sinks", name, option):
                sink = next((sink for sink in self._pipeline.sinks if sink.name == name), None)
                return None if sink is None else sink.message.get(option, sink.options.get(option))
            case ("sources", name, option):
                return self._pipeline.sources[name].options.get(option)
        return None

    def _inside(self, node: ast.Constant, index: int) -> Location:
        """Exact for text in triple quotes and for plain one-liners; escapes are not followed."""
        before = str(node.value)[:index]
        line = node.lineno + before.count("\n")
        if "\n" in before:
            return Location(self._file, line, len(before) - before.rfind("\n"))
        opening = 3 if self._lines[node.lineno - 1][node.col_offset :].lstrip("rRuU")[:3] in ('"""', "'''") else 1
        return Location(self._file, line, node.col_offset + 1 + (opening + index if index else 0))


def _assigns_pipeline(node: ast.stmt) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return any(isinstance(target, ast.Name) and target.id == "pipeline" for target in targets)
