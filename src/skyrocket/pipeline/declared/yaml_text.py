"""A YAML file as a tree whose texts know where each of their characters stands; `${NAME}` is replaced in values.

`${NAME}` is a variable of the environment, `${NAME:-default}` has something to fall back on, `$${` is `${` itself.
"""

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import yaml

from skyrocket.pipeline.declared.problems import Location, PipelineFileError

_VARIABLE: Final = re.compile(r"\$\$\{|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}|\$\{[^}]*\}?")


class FileText:
    """A file's text, and the line and column of an index into it."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.text = text
        self._line_starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def location(self, index: int) -> Location:
        line = bisect_right(self._line_starts, index)
        return Location(self.file, line, index - self._line_starts[line - 1] + 1)

    def root(self) -> yaml.Node:
        """The document; raises PipelineFileError when it is not YAML, or empty."""
        try:
            node: yaml.Node | None = yaml.compose(self.text, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line, column = (0, 0) if mark is None else (mark.line, mark.column)
            cause = f"not YAML: {error.problem}{f' {error.context}' if error.context else ''}"
            raise PipelineFileError.at(self.file, cause, _YAML_HINT, line + 1, column + 1) from None
        except yaml.YAMLError as error:
            raise PipelineFileError.at(self.file, f"not YAML: {str(error).splitlines()[0]}", _YAML_HINT) from None
        if node is None:
            raise PipelineFileError.at(self.file, "the file is empty", "docs/guides/pipeline-files.md has one")
        return node


_YAML_HINT: Final = "check indentation and quotes around here"


class Words:
    """The text of a scalar after replacement; `location(index)` is where that character stands in the file."""

    def __init__(self, file: FileText, node: yaml.ScalarNode, environment: Mapping[str, str]) -> None:
        self._file = file
        self.start = file.location(node.start_mark.index)
        origins = _origins(file.text, node)
        replaced = _replaced(node.value, environment)
        self.text = replaced.text
        self.missing = [(name, file.location(origins[index])) for name, index in replaced.missing]
        self._origins = [origins[min(index, len(origins) - 1)] for index in replaced.indices]

    def location(self, index: int = 0) -> Location:
        if not self._origins:
            return self.start
        if index >= len(self._origins):  # the end of the text, as in a statement that is not finished
            last = self._file.location(self._origins[-1])
            return last._replace(column=last.column + 1)
        return self._file.location(self._origins[index])


class _Replaced(NamedTuple):
    text: str
    indices: Sequence[int]  # of each character in the text as it was
    missing: Sequence[tuple[str, int]]  # what cannot be replaced, and its index


def _replaced(value: str, environment: Mapping[str, str]) -> _Replaced:
    parts: list[str] = []
    indices: list[int] = []
    missing: list[tuple[str, int]] = []
    done = 0
    for match in _VARIABLE.finditer(value):
        parts.append(value[done : match.start()])
        indices += range(done, match.start())
        found = "${" if match[0] == "$${" else _found(match, environment)
        if found is None:
            missing.append((match[0], match.start()))
        else:
            parts.append(found)
            indices += [match.start()] * len(found)
        done = match.end()
    parts.append(value[done:])
    indices += range(done, len(value))
    return _Replaced("".join(parts), indices, missing)


def _found(match: re.Match[str], environment: Mapping[str, str]) -> str | None:
    name = match["name"]
    if name is None:
        return None
    if match["default"] is not None:
        return environment.get(name) or match["default"]  # as the shell: an empty variable counts as missing
    return environment.get(name)


def _origins(text: str, node: yaml.ScalarNode) -> list[int]:
    """For each character of the value its index in the file.

    YAML gives only the ends of a scalar. Between them the characters come in the same order, but for indentation,
    folded line ends, quotes and escapes; so those that can be seen are searched one after the other.
    """
    position, end = node.start_mark.index, node.end_mark.index
    if node.style in ("|", ">"):
        position = text.find("\n", position, end) + 1  # behind the header, as |-
    elif node.style in ("'", '"'):
        position += 1
    origins: list[int] = []
    for character in node.value:
        if not character.isspace():
            found = text.find(character, position, end)
            if found >= 0:  # else it was written as an escape: it stays where we are
                position = found
        origins.append(min(position, end))
        position += 1
    return origins
