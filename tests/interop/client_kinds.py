"""The clients of the matrix: unmodified libraries from their registries, and the program around each.

Libraries are fetched and programs built on first use, into the cache directory of apache.py; after that no registry
is asked. A tool or registry that is missing raises Unavailable, which is a reason to skip.
"""

import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.interop.apache import Finished, Unavailable, cache_directory, locked, obtain, run_bounded
from tests.interop.standalone import TLS_ONLY

GO_SOURCES = Path(__file__).parent / "go"
NODE_SOURCES = Path(__file__).parent / "node"
FETCH_TIMEOUT_S = 240

_REGISTRY_TROUBLE = (
    *("403 Forbidden", "404 Not Found", "502 ", "503 ", "410 Gone"),
    *("dial tcp", "no such host", "proxyconnect", "i/o timeout", "connection refused"),
    *("ENOTFOUND", "ECONNREFUSED", "ETIMEDOUT", "EAI_AGAIN", "E403", "E404"),
)


@dataclass(frozen=True)
class Launch:
    """How to start a client program."""

    command: Callable[[str, Path], list[str]]  # name server, home directory → command line
    environment: Mapping[str, str] = field(default_factory=dict)
    server_settings: Mapping[str, str] = field(default_factory=dict)  # what the server beside it needs


@dataclass(frozen=True)
class ClientKind:
    """A row of the matrix."""

    name: str
    library: str
    obtain: Callable[[], Launch]
    is_cached: Callable[[], bool]

    def __str__(self) -> str:
        return self.name


def _java(
    version: str,
    variant: str = "",
    environment: Mapping[str, str] | None = None,
    server_settings: Mapping[str, str] | None = None,
) -> ClientKind:
    def launch() -> Launch:
        apache = obtain(version)
        return Launch(
            lambda name_server, home: apache.command("ScenarioClient", name_server, home=home),
            environment or {},
            server_settings or {},
        )

    cached = cache_directory() / version / "classpath.txt"
    library = f"org.apache.rocketmq:rocketmq-client {version}"
    return ClientKind(f"java-{version}{variant}", library, launch, cached.exists)


def _built_go_program() -> Path:
    sources = [GO_SOURCES / name for name in ("go.mod", "go.sum", "scenario_client.go")]
    return cache_directory() / f"go-{_digest(sources)}" / "scenario_client"


def _go() -> Launch:
    _require("go")
    program = _built_go_program()
    program.parent.mkdir(parents=True, exist_ok=True)
    with locked(program.parent / "lock"):
        if not program.exists():
            with tempfile.TemporaryDirectory(dir=program.parent) as scratch:
                built = Path(scratch) / program.name
                _fetch(
                    ["go", "build", "-mod=readonly", "-o", str(built), "."], "Go", GO_SOURCES, {"GOTOOLCHAIN": "local"}
                )
                built.rename(program)
    return Launch(lambda name_server, home: [str(program), name_server])


def _node_modules() -> Path:
    return cache_directory() / f"node-{_digest([NODE_SOURCES / 'package.json'])}" / "node_modules"


def _node() -> Launch:
    _require("node", "npm")
    modules = _node_modules()
    modules.parent.mkdir(parents=True, exist_ok=True)
    with locked(modules.parent / "lock"):
        if not modules.exists():
            with tempfile.TemporaryDirectory(dir=modules.parent) as scratch:
                shutil.copy(NODE_SOURCES / "package.json", scratch)
                quiet = ["--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts"]
                _fetch(["npm", "install", *quiet], "Node", Path(scratch), {})
                (Path(scratch) / "node_modules").rename(modules)
    program = str(NODE_SOURCES / "scenario_client.js")
    return Launch(lambda name_server, home: ["node", program, name_server], {"NODE_PATH": str(modules)})


def _fetch(command: list[str], what: str, folder: Path, environment: Mapping[str, str]) -> None:
    try:
        done: Finished = run_bounded(command, FETCH_TIMEOUT_S, cwd=folder, environment={**os.environ, **environment})
    except subprocess.TimeoutExpired:
        raise Unavailable(f"the {what} client was not fetched within {FETCH_TIMEOUT_S} s") from None
    if done.exit_code == 0:
        return
    trouble = done.stdout + done.stderr
    if any(phrase in trouble for phrase in _REGISTRY_TROUBLE):
        raise Unavailable(f"the registry does not give the {what} client")
    raise RuntimeError(f"{' '.join(command)} failed:\n{trouble[-3000:]}")


def _require(*tools: str) -> None:
    for tool in tools:
        if shutil.which(tool) is None:
            raise Unavailable(f"{tool} is not on the PATH")


def _digest(sources: list[Path]) -> str:
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]


JAVA_55 = _java("5.5.0")
JAVA_54 = _java("5.4.0")
JAVA_49 = _java("4.9.7")
JAVA_54_BINARY = _java("5.4.0", "-binary", {"ROCKETMQ_SERIALIZE_TYPE": "ROCKETMQ"})  # compact headers, not JSON
JAVA_54_TLS = _java("5.4.0", "-tls", {"JAVA_TOOL_OPTIONS": "-Dtls.enable=true"}, TLS_ONLY)
GO = ClientKind("go", "github.com/apache/rocketmq-client-go/v2 v2.1.2", _go, lambda: _built_go_program().exists())
NODE = ClientKind("node", "ali-ons 3.12.0", _node, lambda: _node_modules().exists())

CLIENTS = (JAVA_55, JAVA_54, JAVA_54_BINARY, JAVA_54_TLS, JAVA_49, GO, NODE)


@functools.cache
def launch_of(kind: ClientKind) -> Launch | str:
    """How to start it, or why that cannot be."""
    try:
        return kind.obtain()
    except Unavailable as reason:
        return str(reason)
