"""The import arrows: who may import whom, without a circle at any level. `make check` compares this with the code.

The source is read as a syntax tree, so imports inside functions and under TYPE_CHECKING count as well; only between
folders, whose `__init__` may offer names lazily, those alone count that run at once. Importing a.b.c runs a/__init__
and a.b/__init__ first: these count too, except those that the importing module itself lies in.
"""

import ast
import os.path
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests import ROOT

SOURCE = ROOT / "src" / "skyrocket"
PACKAGE = "skyrocket"

# These serve all others and import only each other.
SERVE_ALL = {"config", "clock", "errors", "fastjson"}

# Part ▸ what it may import besides SERVE_ALL. The nouns of `model` are open to every part above it.
ARROWS: dict[str, set[str]] = {
    "model": set(),
    "format": {"model"},
    "protocol": {"model"},
    "filtering": {"model"},
    "store": {"format", "model"},
    "offline": {"format", "model"},
    "inspector": {"offline", "format", "model"},
    "repair": {"store", "inspector", "offline", "format", "model"},
    "remoting": {"protocol", "model"},
    "observability": set(),
    "controller": {"remoting", "protocol", "observability", "model"},
    "namesrv": {"controller", "remoting", "protocol", "observability", "model"},
    "broker": {"store", "remoting", "protocol", "format", "filtering", "observability", "model"},
    "schemas": set(),
    "console": {
        "client",
        "remoting",
        "protocol",
        "format",
        "filtering",
        "schemas",
        "model",
        PACKAGE,
    },  # PACKAGE: its version
    "columns": {"format", "model"},
    "client": {"remoting", "protocol", "columns", "format", "model", "filtering", "observability", "schemas"},
    "integrations": {"client", "remoting", "model"},
    "pipeline": {"client", "protocol", "columns", "offline", "format", "filtering", "schemas", "model"},
    PACKAGE: {"client", "model"},  # skyrocket/__init__.py: what applications import
    "__main__": {"cli"},
}
MAY_IMPORT_EVERYTHING = {"cli", "testing"}  # but not each other, and nobody imports them

# Library ▸ the only parts that may import it.
ONLY_IN = {
    "pyspark": {"pipeline"},
    "pyarrow": {"columns", "pipeline", "client", "console"},  # console: dead letters as Parquet
    "opentelemetry": {"client"},
    "cryptography": {"remoting"},
    "rocksdict": {"repair"},
    "kazoo": {"controller"},
    "httpx": {"controller"},
    "starlette": {"console", "cli"},  # the command line looks whether it is there
    "uvicorn": {"console", "cli"},
    "celery": {"integrations"},
    "dramatiq": {"integrations"},
    "kombu": {"integrations"},
}
# These wait for nobody: no event loop, no network.
NEVER_IN = {"asyncio": {"store", "format", "protocol"}, "socket": {"store", "format", "protocol"}}

# Circles that are still to be untied, by the folder that holds them; each line must go with its circle.
KNOWN_MODULE_CYCLES: set[str] = set()
KNOWN_FOLDER_CYCLES: set[str] = set()


class Import(NamedTuple):
    """One import statement's target, as a full dotted name."""

    module: str  # who imports
    target: str
    line: int
    source: str  # the x of `from x import y`, else the target
    at_once: bool = True  # not inside a function, not for type checkers alone

    def __str__(self) -> str:
        return f"{self.module} (line {self.line}) imports {self.target}"


def modules_of(source: Path) -> dict[str, Path]:
    """Every module of a package by its dotted name."""
    modules = {}
    for path in sorted(source.rglob("*.py")):
        parts = (PACKAGE, *path.relative_to(source).with_suffix("").parts)
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return modules


@cache
def imports_of(module: str, path: Path) -> Sequence[Import]:
    """What a module imports, wherever in its text; `from x import y` gives x.y."""
    found = []
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node, at_once in _import_nodes(ast.parse(path.read_text(encoding="utf-8"), str(path)), at_once=True):
        base = ""
        if isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, base] if base else above)
        for alias in node.names:
            target = f"{base}.{alias.name}" if base else alias.name
            found.append(Import(module, target, node.lineno, base or target, at_once))
    return found


def _import_nodes(node: ast.AST, *, at_once: bool) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield node, at_once
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        at_once = False
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
        at_once = False
    for child in ast.iter_child_nodes(node):
        yield from _import_nodes(child, at_once=at_once)


def part_of(module: str) -> str:
    """The folder or file directly below skyrocket/ that a module belongs to."""
    return module.split(".")[1] if "." in module else module


def violations(source: Path) -> list[str]:
    """Everything that goes against the arrows of the table."""
    modules = modules_of(source)
    parts = {part_of(module) for module in modules}
    found = [
        f"{part} has no line in the table of import arrows: add it to ARROWS in {Path(__file__).name}"
        for part in sorted(parts - _known_parts())
    ]
    for module, path in modules.items():
        for statement in imports_of(module, path):
            target = _module_meant(statement.target, modules)
            if target is None:
                found += _library_violations(statement)
            elif target != module:
                found += _arrow_violations(statement, part_of(target))
    return found


def _known_parts() -> set[str]:
    return ARROWS.keys() | SERVE_ALL | MAY_IMPORT_EVERYTHING


def import_graph(source: Path, *, at_once: bool) -> dict[str, set[str]]:
    """Module ▸ the modules that its imports run, parent packages among them; all imports or those that run at once."""
    modules = modules_of(source)
    graph = {}
    for module, path in modules.items():
        graph[module] = {
            target
            for statement in imports_of(module, path)
            if statement.at_once or not at_once
            for target in _modules_run(statement, modules)
            if target != module
        }
    return graph


def _modules_run(statement: Import, modules: Mapping[str, Path]) -> Iterator[str]:
    target = _module_meant(statement.target, modules)
    if target is not None:
        yield target
        if statement.source in modules:
            yield statement.source  # named in the statement: it counts even if the module itself lies in it
        while "." in target:
            target = target.rpartition(".")[0]
            if target in modules and not f"{statement.module}.".startswith(f"{target}."):
                yield target


def module_cycles(source: Path) -> list[set[str]]:
    """Modules that import each other in a circle."""
    return _cycles(import_graph(source, at_once=False))


def folder_cycles(source: Path) -> list[set[str]]:
    """Folders that import each other in a circle, at any depth of looking; a folder's own files count as the folder."""
    modules, graph = modules_of(source), import_graph(source, at_once=True)
    found: list[set[str]] = []
    for depth in range(2, 1 + max(module.count(".") + 1 for module in modules)):
        folders: dict[str, set[str]] = {}
        for module, targets in graph.items():
            here = _folder_of(module, modules, depth)
            folders.setdefault(here, set()).update(
                there for target in targets if (there := _folder_of(target, modules, depth)) != here
            )
        found += [cycle for cycle in _cycles(folders) if cycle not in found]
    return found


def _folder_of(module: str, modules: Mapping[str, Path], depth: int) -> str:
    parts = module.split(".")
    is_folder = modules[module].name == "__init__.py" or len(parts) == 2  # files of the root stand for themselves
    return ".".join((parts if is_folder else parts[:-1])[:depth])


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


def _cycles(graph: Mapping[str, Iterable[str]]) -> list[set[str]]:
    """The strongly connected components of more than one node (Tarjan)."""
    found: list[set[str]] = []
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []

    def visit(node: str) -> None:
        order[node] = lowest[node] = len(order)
        stack.append(node)
        for target in graph.get(node, ()):
            if target not in order:
                visit(target)
                lowest[node] = min(lowest[node], lowest[target])
            elif target in stack:
                lowest[node] = min(lowest[node], order[target])
        if lowest[node] == order[node]:
            position = stack.index(node)
            if len(stack) > position + 1:
                found.append(set(stack[position:]))
            del stack[position:]

    for node in graph:
        if node not in order:
            visit(node)
    return found


def _common_folder(names: Iterable[str]) -> str:
    return os.path.commonpath([name.replace(".", "/") for name in names]).replace("/", ".")


def test_imports_follow_the_arrows() -> None:
    assert violations(SOURCE) == []


def test_the_table_lists_only_what_exists() -> None:
    existing = {part_of(module) for module in modules_of(SOURCE)}
    assert _known_parts() - existing == set()
    assert set().union(*ARROWS.values()) - existing == set()


def test_the_arrows_themselves_have_no_cycle() -> None:
    assert _cycles(ARROWS) == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert {_common_folder(cycle) for cycle in module_cycles(SOURCE)} == KNOWN_MODULE_CYCLES


def test_no_folders_import_each_other_in_a_circle() -> None:
    assert {_common_folder(cycle) for cycle in folder_cycles(SOURCE)} == KNOWN_FOLDER_CYCLES


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
            {"client/a.py": "import pyspark.sql, opentelemetry", "pipeline/b.py": "import pyspark, opentelemetry"},
            ["skyrocket.client.a (line 1) imports pyspark.sql", "skyrocket.pipeline.b (line 1) imports opentelemetry"],
            id="libraries-at-home",
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
    assert module_cycles(package) == []
    assert folder_cycles(package) == []


@pytest.mark.parametrize(
    ("files", "modules", "folders"),
    [
        pytest.param(
            {
                "store/a.py": "from skyrocket.store import b",
                "store/b.py": "from .c import x",
                "store/c.py": "def f():\n    from .a import y",
            },
            [{"store.a", "store.b", "store.c"}],
            [],
            id="inside-a-folder",
        ),
        pytest.param(
            {"client/__init__.py": "from .producer import P", "client/producer.py": "from skyrocket.client import Q"},
            [{"client", "client.producer"}],
            [],
            id="a-module-and-its-own-package-by-name",
        ),
        pytest.param(
            {
                "client/__init__.py": "from skyrocket.client.producer import P",
                "client/producer.py": "import skyrocket.format.record",
                "client/errors.py": "",
                "format/__init__.py": "",
                "format/record.py": "from skyrocket.client.errors import E",
            },
            [{"client", "client.producer", "format.record"}],
            [{"client", "format"}],
            id="through-a-parent-package",
        ),
        pytest.param(
            {
                "broker/pop/__init__.py": "",
                "broker/pop/a.py": "from skyrocket.broker.timer import a",
                "broker/timer/__init__.py": "",
                "broker/timer/a.py": "",
                "broker/timer/b.py": "import skyrocket.broker.pop.b",
                "broker/pop/b.py": "",
            },
            [],
            [{"broker.pop", "broker.timer"}],
            id="between-sub-packages",
        ),
        pytest.param(
            {
                "cli/run.py": "import skyrocket.cli.fleet.plan",
                "cli/options.py": "",
                "cli/fleet/__init__.py": "",
                "cli/fleet/plan.py": "import skyrocket.cli.options",
            },
            [],
            [{"cli", "cli.fleet"}],
            id="between-a-folder-and-its-own-files",
        ),
        pytest.param(
            {
                "pipeline/jobs/lag/a.py": "import skyrocket.pipeline.jobs.dlq.a",
                "pipeline/jobs/lag/b.py": "",
                "pipeline/jobs/dlq/a.py": "",
                "pipeline/jobs/dlq/b.py": "import skyrocket.pipeline.jobs.lag.b",
            },
            [],
            [{"pipeline.jobs.dlq", "pipeline.jobs.lag"}],
            id="deeper-down",
        ),
    ],
)
def test_the_checker_finds_circles(
    tmp_path: Path, files: dict[str, str], modules: list[set[str]], folders: list[set[str]]
) -> None:
    package = _package(tmp_path, files)
    assert module_cycles(package) == [{f"{PACKAGE}.{name}" for name in cycle} for cycle in modules]
    assert folder_cycles(package) == [{f"{PACKAGE}.{name}" for name in cycle} for cycle in folders]
