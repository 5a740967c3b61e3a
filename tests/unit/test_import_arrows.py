"""The import arrows: who may import whom. `make check` compares this table with the code.

The source is read as a syntax tree, so imports inside functions and under TYPE_CHECKING count as well.
"""

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

SOURCE = Path(__file__).parent.parent.parent / "src" / "skyrocket"
PACKAGE = "skyrocket"

# These serve all others and import only each other.
SERVE_ALL = {"config", "clock", "errors", "metrics", "fastjson"}

# Part ▸ what it may import besides SERVE_ALL. The nouns of `model` are open to every part above it.
ARROWS: dict[str, set[str]] = {
    "model": set(),
    "format": {"model"},
    "protocol": {"model"},
    "filtering": {"model"},
    "store": {"format", "model"},
    "offline": {"format", "model"},
    "inspector": {"offline", "format", "model"},
    "remoting": {"protocol", "model"},
    "observability": set(),
    "namesrv": {"remoting", "protocol", "observability", "model"},
    "broker": {"store", "remoting", "protocol", "format", "filtering", "observability", "model"},
    "client": {"remoting", "protocol", "format", "model"},
    "proxy": {"client", "model"},
    "admin": {"client", "model"},
    "dashboard": {"admin", "model"},
    "pipeline": {"client", "protocol", "offline", "format", "filtering", "model"},
    PACKAGE: {"client", "model"},  # skyrocket/__init__.py: what applications import
    "__main__": {"cli"},
}
MAY_IMPORT_EVERYTHING = {"cli", "testing"}  # but not each other, and nobody imports them

# Library ▸ the only parts that may import it.
ONLY_IN = {"pyspark": {"pipeline"}, "pyarrow": {"pipeline"}, "grpc": {"proxy"}, "opentelemetry": {"client"}}
# These wait for nobody: no event loop, no network.
NEVER_IN = {"asyncio": {"store", "format", "protocol"}, "socket": {"store", "format", "protocol"}}


class Import(NamedTuple):
    """One import statement's target, as a full dotted name."""

    module: str  # who imports
    target: str
    line: int

    def __str__(self) -> str:
        return f"{self.module} (line {self.line}) imports {self.target}"


def modules_of(source: Path) -> dict[str, Path]:
    """Every module of a package by its dotted name."""
    modules = {}
    for path in sorted(source.rglob("*.py")):
        parts = (PACKAGE, *path.relative_to(source).with_suffix("").parts)
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return modules


def imports_of(module: str, path: Path) -> Iterator[Import]:
    """What a module imports, wherever in its text; `from x import y` gives x.y."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(module, alias.name, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, base] if base else above)
            for alias in node.names:
                yield Import(module, f"{base}.{alias.name}", node.lineno)


def part_of(module: str) -> str:
    """The folder or file directly below skyrocket/ that a module belongs to."""
    return module.split(".")[1] if "." in module else module


def violations(source: Path) -> list[str]:
    """Everything that goes against the arrows."""
    modules = modules_of(source)
    parts = {part_of(module) for module in modules}
    known = ARROWS.keys() | SERVE_ALL | MAY_IMPORT_EVERYTHING
    found = [
        f"{part} has no line in the table of import arrows: add it to ARROWS in {Path(__file__).name}"
        for part in sorted(parts - known)
    ]
    graph: dict[str, set[str]] = {}
    for module, path in modules.items():
        for statement in imports_of(module, path):
            target = _module_meant(statement.target, modules)
            if target is None:
                found += _library_violations(statement)
            elif target != module:
                graph.setdefault(module, set()).add(target)
                found += _arrow_violations(statement, part_of(target))
    return found + _cycles(graph)


def _module_meant(target: str, modules: Mapping[str, Path]) -> str | None:
    """The module that an imported name is or comes from; None for a library."""
    if target.split(".")[0] != PACKAGE:
        return None
    while target not in modules and "." in target:
        target = target.rpartition(".")[0]
    return target


def _arrow_violations(statement: Import, target: str) -> list[str]:
    part = part_of(statement.module)
    if target == part:
        return []
    if part in MAY_IMPORT_EVERYTHING:
        allowed = target not in MAY_IMPORT_EVERYTHING
    elif part in ARROWS.keys() | SERVE_ALL:
        allowed = target in SERVE_ALL or target in ARROWS.get(part, set())
    else:
        allowed = True  # it was already told to get a line in the table; more would only be noise
    return [] if allowed else [str(statement)]


def _library_violations(statement: Import) -> list[str]:
    part, library = part_of(statement.module), statement.target.split(".")[0]
    misplaced = library in ONLY_IN and part not in ONLY_IN[library]
    return [str(statement)] if misplaced or part in NEVER_IN.get(library, set()) else []


def _cycles(graph: Mapping[str, set[str]]) -> list[str]:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as cycle:
        return ["import cycle: " + " ▸ ".join(reversed(cycle.args[1]))]
    return []


def test_imports_follow_the_arrows() -> None:
    assert violations(SOURCE) == []


def test_the_arrows_themselves_have_no_cycle() -> None:
    assert _cycles(ARROWS) == []


def _package(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param(
            {"format/record.py": "from skyrocket.store import disk", "store/disk.py": ""},
            ["skyrocket.format.record (line 1) imports skyrocket.store.disk"],
            id="against-an-arrow",
        ),
        pytest.param(
            {"client/producer.py": "def f():\n    import skyrocket.broker.broker", "broker/broker.py": ""},
            ["skyrocket.client.producer (line 2) imports skyrocket.broker.broker"],
            id="inside-a-function",
        ),
        pytest.param(
            {"model/topic.py": "from ..format.record import Record", "format/record.py": ""},
            ["skyrocket.model.topic (line 1) imports skyrocket.format.record.Record"],
            id="relative",
        ),
        pytest.param(
            {"errors.py": "from skyrocket import model", "model/__init__.py": ""},
            ["skyrocket.errors (line 1) imports skyrocket.model"],
            id="what-serves-all-imports-only-its-like",
        ),
        pytest.param(
            {"testing/fakes.py": "import skyrocket.cli", "cli.py": "import skyrocket.testing.fakes"},
            [
                "skyrocket.cli (line 1) imports skyrocket.testing.fakes",
                "skyrocket.testing.fakes (line 1) imports skyrocket.cli",
                "import cycle: skyrocket.cli ▸ skyrocket.testing.fakes ▸ skyrocket.cli",
            ],
            id="nobody-imports-the-command-line-or-the-fakes",
        ),
        pytest.param(
            {"store/flusher.py": "import asyncio.events", "format/record.py": "from socket import socket"},
            [
                "skyrocket.format.record (line 1) imports socket.socket",
                "skyrocket.store.flusher (line 1) imports asyncio.events",
            ],
            id="the-store-does-not-wait",
        ),
        pytest.param(
            {"client/a.py": "import pyspark.sql", "pipeline/b.py": "import pyspark, grpc", "proxy/c.py": "import grpc"},
            ["skyrocket.client.a (line 1) imports pyspark.sql", "skyrocket.pipeline.b (line 1) imports grpc"],
            id="libraries-at-home",
        ),
        pytest.param(
            {
                "store/a.py": "from skyrocket.store import b",
                "store/b.py": "from .c import x",
                "store/c.py": "def f():\n    from .a import y",
            },
            ["import cycle: skyrocket.store.a ▸ skyrocket.store.b ▸ skyrocket.store.c ▸ skyrocket.store.a"],
            id="a-cycle-inside-a-part",
        ),
        pytest.param(
            {"newpart/a.py": "import skyrocket.store.b", "store/b.py": ""},
            ["newpart has no line in the table of import arrows: add it to ARROWS in test_import_arrows.py"],
            id="a-part-that-the-table-does-not-know",
        ),
    ],
)
def test_the_checker_catches(tmp_path: Path, files: dict[str, str], expected: list[str]) -> None:
    assert violations(_package(tmp_path, files)) == expected


def test_the_checker_lets_good_imports_pass(tmp_path: Path) -> None:
    package = _package(
        tmp_path,
        {
            "__init__.py": "from skyrocket.client.producer import Producer",
            "cli.py": "from skyrocket.broker import broker",
            "errors.py": "",
            "client/__init__.py": "",
            "client/producer.py": "import asyncio\nfrom skyrocket.errors import X\nfrom . import routes",
            "client/routes.py": "from ..model.topic import Topic",
            "model/topic.py": "import json",
            "broker/broker.py": "from skyrocket.store.disk import Disk",
            "store/disk.py": "from skyrocket.format import record",
            "format/record.py": "from skyrocket.errors import X",
            "testing/cluster.py": "from skyrocket.broker import broker",
        },
    )
    assert violations(package) == []
