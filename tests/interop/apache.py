"""Apache RocketMQ itself, for comparison: its released jars by way of Maven, and our Java helper compiled against them.

Everything is kept in a cache directory ($SKYROCKET_CACHE, else ~/.cache/skyrocket-interop), one folder per version,
so that only the first run needs the registry. Which registry that is, Maven's own settings say.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

VERSIONS = ("5.5.0", "5.4.0", "4.9.7")  # broker and store have a 5.5.1, but not all modules have
IN_SHORT_MODE = ("5.4.0", "4.9.7")
FASTJSON = "1.2.83"  # what our helpers are written with; releases after 5.5.0 do not bring it along
MODULES = ("rocketmq-store", "rocketmq-broker", "rocketmq-namesrv")
JAVA_SOURCES = Path(__file__).parent / "java"

MAVEN_TIMEOUT_S = 240
JAVAC_TIMEOUT_S = 60

_REGISTRY_TROUBLE = (
    "Could not resolve",
    "Could not transfer",
    "Could not find artifact",
    "No plugin found",
    "Unknown host",
    "offline mode",
)

# RocketMQ unmaps buffers through the JDK's internals, which Java 17 keeps closed.
_OPENED_PACKAGES = ("java.nio", "java.lang", "java.util", "sun.nio.ch", "jdk.internal.ref")

_POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>skyrocket</groupId>
  <artifactId>interop</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
{dependencies}
  </dependencies>
</project>
"""
_DEPENDENCY = (
    "    <dependency><groupId>{group}</groupId>"
    "<artifactId>{module}</artifactId><version>{version}</version></dependency>"
)


class Unavailable(Exception):
    """Java, Maven or the registry is not there: a reason to skip, not a failure."""


@dataclass(frozen=True)
class Finished:
    """What a process left behind."""

    exit_code: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Apache:
    """One version of Apache RocketMQ, ready to run."""

    version: str
    classpath: str

    def __str__(self) -> str:
        return self.version

    def command(self, main_class: str, *arguments: str, home: Path, log_level: str = "INFO") -> list[str]:
        """A java call; whatever RocketMQ writes beside its store goes below `home`."""
        log_settings = JAVA_SOURCES / "logback.xml"
        opens = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED_PACKAGES]
        return [
            "java",
            *("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx1g"),  # a short life: start fast
            f"-Duser.home={home}",
            f"-Djava.io.tmpdir={home}",
            f"-Drocketmq.log.root={home}",
            f"-Dinterop.log={log_level}",
            f"-Dlogback.configurationFile={log_settings}",
            f"-Drmq.logback.configurationFile={log_settings}",
            *opens,
            "-cp",
            self.classpath,
            main_class,
            *arguments,
        ]

    def run(self, main_class: str, *arguments: str, stdin: str, timeout_s: float, log_level: str = "INFO") -> Finished:
        """Run a main class to its end, in a home of its own."""
        with tempfile.TemporaryDirectory(prefix="rocketmq-home-") as home:
            command = self.command(main_class, *arguments, home=Path(home), log_level=log_level)
            return run_bounded(command, timeout_s, stdin=stdin, cwd=Path(home))  # some verbs write where they stand


def obtain(version: str) -> Apache:
    """The jars and our compiled helper, made on first use; raises Unavailable when that cannot be."""
    for tool in ("java", "javac", "mvn"):
        if shutil.which(tool) is None:
            raise Unavailable(f"{tool} is not on the PATH")
    folder = cache_directory() / version
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / "lock"):
        jars = _cached_jars(folder) or _fetch_jars(folder, version)
        return Apache(version, f"{_compiled(folder, jars)}{os.pathsep}{jars}")


def cache_directory() -> Path:
    """Where jars and classes outlive a test run."""
    chosen = os.environ.get("SKYROCKET_CACHE")
    return Path(chosen) if chosen else Path.home() / ".cache" / "skyrocket-interop"


def run_bounded(
    command: list[str],
    timeout_s: float,
    *,
    stdin: str = "",
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Finished:
    """Run a command with its children for at most `timeout_s`; nothing of it is left running."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        cwd=cwd,
        env=environment,
        start_new_session=True,
    )
    try:
        stdout, stderr = process.communicate(stdin, timeout=timeout_s)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return Finished(process.returncode, stdout, stderr)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """One process at a time: pytest may run several workers."""
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _cached_jars(folder: Path) -> str | None:
    listing = folder / "classpath.txt"
    if not listing.exists() or (folder / "pom.xml").read_text() != _pom(folder.name):
        return None
    jars = listing.read_text().strip()
    return jars if all(Path(jar).exists() for jar in jars.split(os.pathsep)) else None


def _fetch_jars(folder: Path, version: str) -> str:
    (folder / "pom.xml").write_text(_pom(version))
    listing = folder / "classpath.txt"
    listing.unlink(missing_ok=True)
    goal = ["dependency:build-classpath", "-DincludeScope=runtime", f"-Dmdep.outputFile={listing}"]
    try:
        done = run_bounded(
            ["mvn", "--quiet", "--batch-mode", "-Dstyle.color=never", *goal], MAVEN_TIMEOUT_S, cwd=folder
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"Maven did not fetch RocketMQ {version} within {MAVEN_TIMEOUT_S} s") from None
    if listing.exists():
        return listing.read_text().strip()
    trouble = done.stdout + done.stderr
    if any(phrase in trouble for phrase in _REGISTRY_TROUBLE):
        raise Unavailable(f"Maven's registry does not give RocketMQ {version}: {_first_error(trouble)}")
    raise RuntimeError(f"Maven failed for RocketMQ {version}:\n{trouble}")


def _pom(version: str) -> str:
    wanted = [("org.apache.rocketmq", module, version) for module in MODULES]
    if not version.startswith("4."):  # which has one of its own, and would get ours instead
        wanted.append(("com.alibaba", "fastjson", FASTJSON))
    dependencies = [_DEPENDENCY.format(group=group, module=module, version=number) for group, module, number in wanted]
    return _POM.format(dependencies="\n".join(dependencies))


def _first_error(text: str) -> str:
    return next((line for line in text.splitlines() if "ERROR" in line), text[:300])[:300]


def _compiled(folder: Path, jars: str) -> Path:
    sources = sorted(JAVA_SOURCES.glob("*.java"))
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    classes = folder / f"classes-{digest}"
    if not classes.exists():
        with tempfile.TemporaryDirectory(dir=folder, prefix="javac-") as scratch:
            arguments = ["-nowarn", "-encoding", "UTF-8", "-d", scratch, "-cp", jars, *map(str, sources)]
            done = run_bounded(["javac", *arguments], JAVAC_TIMEOUT_S)
            if done.exit_code != 0:
                raise RuntimeError(f"javac refused {JAVA_SOURCES.name} for {folder.name}:\n{done.stderr}")
            shutil.copytree(scratch, classes)
    return classes
