"""One mapping of a pipeline file, read key by key; what is wrong is noted with its place, and reading goes on."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import yaml

from skyrocket.pipeline.declared.places import KEY, Part, WrittenPlaces
from skyrocket.pipeline.declared.problems import PipelineFileError, Place, Problem, suggestion
from skyrocket.pipeline.declared.yaml_text import FileText, Words

_DURATION: Final = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[a-z]+)")
_SECONDS: Final = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 0.001),
    **dict.fromkeys(("s", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
}
_TRUTHS: Final = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def duration_seconds(text: str) -> float | None:
    """ "10 seconds", "5m", "200 ms"; None for anything else."""
    match = _DURATION.fullmatch(text.strip().lower())
    return float(match["number"]) * _SECONDS[match["unit"]] if match and match["unit"] in _SECONDS else None


class Notes:
    """What is found out while a file is read: problems, and where everything stands."""

    def __init__(self, file: FileText, environment: Mapping[str, str]) -> None:
        self.file = file
        self.environment = environment
        self.problems: list[Problem] = []
        self._places: dict[Part, Callable[[int], Place]] = {}

    def problem(self, where: yaml.Node | Place, cause: str, next_step: str) -> None:
        place = where if isinstance(where, Place) else self.file.place(where.start_mark.index)
        self.problems.append(Problem(place, cause, next_step))

    def words(self, node: yaml.ScalarNode) -> Words:
        words = Words(self.file, node, self.environment)
        for variable, place in words.missing:
            name = variable.strip("${}")
            if re.fullmatch(r"[A-Za-z_]\w*", name):
                step = f"export {name}, or write ${{{name}:-something}}"
            else:
                step = "write ${NAME} or ${NAME:-default}, or $${ for the characters themselves"
            self.problem(place, f"{variable} cannot be replaced", step)
        return words

    def at(self, part: Part, place: Callable[[int], Place]) -> None:
        self._places[part] = place

    def places(self) -> WrittenPlaces:
        return WrittenPlaces(self.file.file, self._places)

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
        place = notes.file.place(node.start_mark.index)
        notes.at(part, lambda _: place)
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                notes.problem(key, "a key must be a word", "write `key: value`")
            elif key.value in self._values:
                notes.problem(key, f"{key.value} is given twice", "keep one of them")
            else:
                self._keys[key.value], self._values[key.value] = key, value
                self._note_place(key.value, key)

    def _note_place(self, key: str, node: yaml.Node) -> None:
        place = self._notes.file.place(node.start_mark.index)
        self._notes.at((*self.part, key), lambda _: place)
        self._notes.at((*self.part, key, KEY), lambda _: place)

    # ── asking ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def keys(self) -> list[str]:
        return list(self._values)

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

    def text(self, key: str, *, required: str | None = None) -> str | None:
        """A scalar as it is written; `required` is the next step when it is missing."""
        node = self.value(key)
        if node is None:
            if required is not None and key not in self._values:
                self.wrong(None, f"{key} is missing", required)
            return None
        if not isinstance(node, yaml.ScalarNode):
            self.wrong(
                key, f"{key} must be a text, not {_kind(node)}", f"write `{key}: …` on one line, or a block with |"
            )
            return None
        return self._words((*self.part, key), node)

    def _words(self, part: Part, node: yaml.ScalarNode) -> str:
        words = self._notes.words(node)
        self._notes.at(part, words.place)
        return words.text

    def choice(self, key: str, choices: Sequence[str]) -> str | None:
        text = self.text(key)
        if text is None or text in choices:
            return text
        self.wrong(key, f"{key} cannot be {text}", suggestion(text, choices))
        return None

    def whole(self, key: str, least: int = 1) -> int | None:
        text = self.text(key)
        if text is None:
            return None
        digits = text.replace("_", "")
        if not digits.isdecimal() or int(digits) < least:
            self.wrong(
                key, f"{key} must be a whole number of at least {least}, not {text}", f"as `{key}: {max(least, 1000)}`"
            )
            return None
        return int(digits)

    def truth(self, key: str) -> bool | None:
        text = self.text(key)
        if text is None or text.lower() in _TRUTHS:
            return None if text is None else _TRUTHS[text.lower()]
        self.wrong(key, f"{key} must be true or false, not {text}", f"as `{key}: true`")
        return None

    def duration(self, key: str) -> str | None:
        """A length of time as it is written, checked."""
        text = self.text(key)
        if text is None or duration_seconds(text) is not None:
            return text
        self.wrong(key, f"{key} must be a length of time, not {text}", f"as `{key}: 10 seconds` or `{key}: 1 hour`")
        return None

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
        for key in self._values.keys() - set(self._asked):
            self._notes.problem(
                self._keys[key], f"{key} is not known {_where(self.part)}", suggestion(key, sorted(set(self._asked)))
            )


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
