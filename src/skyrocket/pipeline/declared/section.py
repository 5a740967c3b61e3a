"""One mapping of a pipeline file, read key by key; what is wrong is noted with its location, and reading goes on."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import yaml

from skyrocket.pipeline.declared.locations import KEY, Part, YamlLocations
from skyrocket.pipeline.declared.problems import Location, PipelineFileError, Problem, suggestion
from skyrocket.pipeline.declared.yaml_text import FileText, Words
from skyrocket.pipeline.options import duration_ms, truth

T = TypeVar("T")


def duration_seconds(text: str) -> float | None:
    """ "10 seconds", "5m", "200 ms"; None for anything else, also for a bare number."""
    found = duration_ms(text) if text.strip()[-1:].isalpha() else None
    return None if found is None else found / 1000


class Notes:
    """What is found out while a file is read: problems, and where everything stands."""

    def __init__(self, file: FileText, environment: Mapping[str, str]) -> None:
        self.file = file
        self.environment = environment
        self.problems: list[Problem] = []
        self._locations: dict[Part, Callable[[int], Location]] = {}

    def problem(self, where: yaml.Node | Location, cause: str, next_step: str) -> None:
        location = where if isinstance(where, Location) else self.file.location(where.start_mark.index)
        self.problems.append(Problem(location, cause, next_step))

    def words(self, node: yaml.ScalarNode) -> Words:
        words = Words(self.file, node, self.environment)
        for variable, location in words.missing:
            name = variable.strip("${}")
            if re.fullmatch(r"[A-Za-z_]\w*", name):
                step = f"export {name}, or write ${{{name}:-something}}"
            else:
                step = "write ${NAME} or ${NAME:-default}, or $${ for the characters themselves"
            self.problem(location, f"{variable} cannot be replaced", step)
        return words

    def at(self, part: Part, location: Callable[[int], Location]) -> None:
        self._locations[part] = location

    def locations(self) -> YamlLocations:
        return YamlLocations(self.file.file, self._locations)

    def raise_problems(self) -> None:
        if self.problems:
            raise PipelineFileError(self.problems)


class Section:
    """A mapping; keys that nobody asks for are unknown keys."""

    def __init__(self, node: yaml.MappingNode, part: Part, notes: Notes) -> None:
        self.node = node
        self.part = part
        self._notes = notes
        self._values: dict[str, yaml.Node] = {}
        self._keys: dict[str, yaml.Node] = {}
        self._asked: list[str] = []
        location = notes.file.location(node.start_mark.index)
        notes.at(part, lambda _: location)
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                notes.problem(key, "a key must be a word", "write `key: value`")
            elif key.value in self._values:
                notes.problem(key, f"{key.value} is given twice", "keep one of them")
            else:
                self._keys[key.value], self._values[key.value] = key, value
                self._note_location(key.value, key)

    def _note_location(self, key: str, node: yaml.Node) -> None:
        location = self._notes.file.location(node.start_mark.index)
        self._notes.at((*self.part, key), lambda _: location)
        self._notes.at((*self.part, key, KEY), lambda _: location)

    # ── asking ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def keys(self) -> list[str]:
        return list(self._values)

    def unasked(self) -> list[str]:
        return [key for key in self._values if key not in self._asked]

    def knows(self, *keys: str) -> None:
        """Keys that may stand here, whether they are asked for or not."""
        self._asked += keys

    def value(self, key: str) -> yaml.Node | None:
        self._asked.append(key)
        node = self._values.get(key)
        if isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null":
            self.wrong(key, f"{key} is empty", "give it a value, or leave it out")
            return None
        return node

    def text(self, key: str) -> str | None:
        """A scalar as it is written."""
        node = self.value(key)
        if node is None or isinstance(node, yaml.ScalarNode):
            return None if node is None else self._words((*self.part, key), node)
        self.wrong(key, f"{key} must be a text, not {_kind(node)}", f"write `{key}: …` on one line, or a block with |")
        return None

    def _words(self, part: Part, node: yaml.ScalarNode) -> str:
        words = self._notes.words(node)
        self._notes.at(part, words.location)
        return words.text

    def choice(self, key: str, choices: Sequence[str]) -> str | None:
        text = self.text(key)
        if text is None or text in choices:
            return text
        self.wrong(key, f"{key} cannot be {text}", suggestion(text, choices))
        return None

    def _checked(self, key: str, parse: Callable[[str], T | None], kind: str, examples: Sequence[str]) -> T | None:
        text = self.text(key)
        value = None if text is None else parse(text)
        if text is not None and value is None:
            self.wrong(key, f"{key} must be {kind}, not {text}", f"as {' or '.join(f'`{key}: {e}`' for e in examples)}")
        return value

    def whole(self, key: str) -> int | None:
        return self._checked(key, _whole, "a whole number of at least 0", ["1000"])

    def truth(self, key: str) -> bool | None:
        return self._checked(key, truth, "true or false", ["true"])

    def seconds(self, key: str) -> float | None:
        return self._checked(key, duration_seconds, "a length of time", ["10 seconds", "1 hour"])

    def duration(self, key: str) -> str | None:
        """A length of time as it is written, checked."""
        return None if self.seconds(key) is None else self.text(key)

    def texts(self, key: str) -> tuple[str, ...]:
        """One text or a list of them."""
        node = self.value(key)
        items = node.value if isinstance(node, yaml.SequenceNode) else [] if node is None else [node]
        found: list[str] = []
        for number, item in enumerate(items):
            if isinstance(item, yaml.ScalarNode):
                found.append(self._words((*self.part, key, str(number)), item))
            else:
                self._notes.problem(
                    item, f"{key} must be a list of texts, not of {_kind(item)}", f"as `{key}: [one, two]`"
                )
        return tuple(found)

    def section(self, key: str, example: str, part: Part | None = None) -> "Section | None":
        node = self.value(key)
        if node is None:
            return None
        if not isinstance(node, yaml.MappingNode):
            self.wrong(key, f"{key} must be a mapping, not {_kind(node)}", f"as `{example}`")
            return None
        return Section(node, part or (*self.part, key), self._notes)

    def items(self, key: str, example: str) -> Iterator[yaml.MappingNode]:
        """The mappings of a list; one alone need not be a list."""
        node = self.value(key)
        nodes = node.value if isinstance(node, yaml.SequenceNode) else [] if node is None else [node]
        for item in nodes:
            if isinstance(item, yaml.MappingNode):
                yield item
            else:
                self._notes.problem(item, f"{key} must be a list of mappings, not of {_kind(item)}", f"as `{example}`")

    def named(self, part: Part, node: yaml.MappingNode) -> "Section":
        return Section(node, part, self._notes)

    def option(self, key: str) -> str | None:
        """The value of an option of Spark: a text, or a list or mapping as its JSON."""
        node = self.value(key)
        if node is None or isinstance(node, yaml.ScalarNode):
            return self.text(key)
        if isinstance(node, yaml.SequenceNode) and all(isinstance(item, yaml.ScalarNode) for item in node.value):
            return ",".join(self.texts(key))
        return json.dumps(_plain(node), sort_keys=True)

    # ── telling ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def wrong(self, key: str | None, cause: str, next_step: str) -> None:
        """A problem with a key's value, or with the whole mapping."""
        node = self._values[key] if key is not None and key in self._values else self.node
        self._notes.problem(node, cause, next_step)

    def finish(self) -> None:
        """Everything was asked for: what is left has a wrong name."""
        for key in self.unasked():
            self._notes.problem(
                self._keys[key], f"{key} is not known {_where(self.part)}", suggestion(key, sorted(set(self._asked)))
            )


def _whole(text: str) -> int | None:
    digits = text.replace("_", "")
    return int(digits) if digits.isdecimal() else None


def _where(part: Part) -> str:
    return "at the top of a pipeline file" if not part else f"in {' ▸ '.join(part)}"


def _kind(node: yaml.Node) -> str:
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    return "a mapping" if isinstance(node, yaml.MappingNode) else "a text"


def _plain(node: yaml.Node) -> Any:
    """As JSON has it: offsets per topic, broker and queue."""
    if isinstance(node, yaml.MappingNode):
        return {str(key.value): _plain(value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item) for item in node.value]
    text = str(node.value)
    return int(text) if re.fullmatch(r"-?\d+", text) else text
