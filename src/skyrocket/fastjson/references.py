r"""`{"$ref": path}` → the object that the path means.

fastjson 1.x (RocketMQ up to 5.3) writes an object once and refers to it afterwards:

    $            the whole text             $.a.b        field b of field a; `\` before any sign in a name
    @            the object around it       $.list[0]    an element, or the value of an integer key
    ..           the object around that

A path always leads to the first, full occurrence, never through or to another reference. So those are not followed:
a few hostile lines could otherwise cost hours.
"""

import re
from collections.abc import Sequence
from typing import Any

from skyrocket.fastjson.values import MAX_DEPTH, Json

REFERENCE = "$ref"
_STEP = re.compile(
    r"""\.(?P<name>(?:\\.|[^.\[\\])+)
      | \[(?P<number>-?[0-9]{1,19})\]
      | \[(?P<quote>['"])(?P<quoted>.*?)(?P=quote)\]""",
    re.VERBOSE,
)
_ESCAPED = re.compile(r"\\(.)")
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,19}")

_Node = dict[Any, Any] | list[Any]


def resolve(root: Json) -> Json:
    """Replace every reference by what it means, or by {}; the given values are changed."""
    if not isinstance(root, dict | list):
        return root
    if is_reference(root):
        return {}
    # All meanings are found before the first is put in place: else a path could lead through another reference.
    found = [(node, place, _meaning(root, node[place], around)) for node, place, around in _references(root)]
    for node, place, meaning in found:
        node[place] = {} if meaning is None or is_reference(meaning) else meaning
    return root


def is_reference(value: object) -> bool:
    """Whether a value is an object with `$ref` and nothing else."""
    return isinstance(value, dict) and len(value) == 1 and isinstance(value.get(REFERENCE), str)


def _references(root: _Node) -> list[tuple[_Node, Any, tuple[_Node, ...]]]:
    """Where the references stand: container, key or index, and all containers around from the outermost."""
    references: list[tuple[_Node, Any, tuple[_Node, ...]]] = []
    stack: list[tuple[_Node, tuple[_Node, ...]]] = [(root, (root,))]
    while stack:
        node, around = stack.pop()
        for place, child in node.items() if isinstance(node, dict) else enumerate(node):
            if is_reference(child):
                references.append((node, place, around))
            elif isinstance(child, dict | list):
                stack.append((child, (*around, child)))
    return references


def _meaning(root: _Node, reference: Any, around: Sequence[_Node]) -> Any:
    path: str = reference[REFERENCE]
    if path == "@":
        return around[-1]
    if path == "..":
        return around[-2] if len(around) > 1 else None
    if not path.startswith("$"):
        return None
    value: Any = root
    position = 1
    for _ in range(MAX_DEPTH):
        if position == len(path):
            break
        step = _STEP.match(path, position)
        if step is None:
            return None
        position = step.end()
        value = _child(value, step)
    return value if position == len(path) else None


def _child(value: Any, step: re.Match[str]) -> Any:
    number = step["number"]
    if isinstance(value, list):
        return value[int(number)] if number is not None and 0 <= int(number) < len(value) else None
    if not isinstance(value, dict):
        return None
    if number is not None:
        return value.get(int(number), value.get(number))
    name = step["quoted"] if step["quoted"] is not None else _ESCAPED.sub(r"\1", step["name"])
    if name in value:
        return value[name]
    # An integer key may also be written as a name.
    return value.get(int(name)) if _WHOLE_NUMBER.fullmatch(name) else None
