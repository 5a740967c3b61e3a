"""The official Java client as load, the same program against every RocketMQ; what the server spent meanwhile."""

import contextlib
import hashlib
import json
import os
import select
import subprocess
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.interop.apache import Apache, cache_directory, run_bounded

from bench.load import server_usage

SENT_TOPIC = "BenchSend"  # as ClientLoad.java calls it
JAVA_SOURCES = Path(__file__).parent / "java"
_JAVAC_TIMEOUT_S = 60
_SILENCE_S = 120.0  # longer than any phase without a word, beyond its own length
_SAMPLE_S = 0.5
# RocketMQ unmaps buffers through the JDK's internals, which Java 17 keeps closed.
_OPENED_PACKAGES = ("java.nio", "java.lang", "java.util", "sun.nio.ch", "jdk.internal.ref")


class ClientFailed(Exception):
    """The Java program did not come to its end; says what it said."""


@dataclass(frozen=True)
class Load:
    """What the client does."""

    threads: int = 64
    instances: int = 1  # client instances, each with a connection of its own; RocketMQ's own benchmark has one
    body_bytes: int = 128
    batch: int = 16
    warm_up_s: float = 30.0
    seconds: float = 20.0


@dataclass(frozen=True)
class Phase:
    """One measured part: send, consume or batch."""

    messages: int
    seconds: float
    errors: int
    server_cpu_s: float
    p50_ms: float | None = None
    p99_ms: float | None = None
    p999_ms: float | None = None
    first_error: str = ""

    @property
    def rate(self) -> float:
        """Messages per second."""
        return self.messages / self.seconds if self.seconds else 0.0

    @property
    def cpu_us(self) -> float:
        """Microseconds of server CPU per message."""
        return self.server_cpu_s / max(self.messages, 1) * 1e6


@dataclass
class Measured:
    """A server under the load."""

    phases: dict[str, Phase] = field(default_factory=dict)
    loaded_memory: server_usage.Memory = server_usage.Memory(0, 0)  # the most that was seen in a measured phase

    def as_json(self) -> dict[str, Any]:
        """For the file of results."""
        return asdict(self)


def java_command(apache_jars: str, home: Path, flags: tuple[str, ...], main_class: str, *arguments: str) -> list[str]:
    """A call of java that keeps everything it writes below `home`."""
    log_settings = JAVA_SOURCES / "logback.xml"
    return [
        "java",
        *flags,
        f"-Duser.home={home}",
        f"-Djava.io.tmpdir={home}",
        f"-Drocketmq.log.root={home}",
        f"-Dlogback.configurationFile={log_settings}",
        f"-Drmq.logback.configurationFile={log_settings}",
        *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED_PACKAGES),
        "-cp",
        apache_jars,
        main_class,
        *arguments,
    ]


def measure(apache: Apache, name_server: str, load: Load, server_pids: list[int]) -> Measured:
    """Run the client to its end and look at the server's processes at each phase's begin and end."""
    with tempfile.TemporaryDirectory(prefix="bench-client-") as home, open(f"{home}/stderr", "w+") as errors:
        arguments = [load.threads, load.instances, load.body_bytes, load.batch, load.warm_up_s, load.seconds]
        jars = f"{_compiled(apache)}{os.pathsep}{apache.classpath}"
        command = java_command(
            jars, Path(home), ("-Xms512m", "-Xmx512m"), "ClientLoad", name_server, *map(str, arguments)
        )
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors)
        try:
            measured = follow(process, server_pids, _SILENCE_S + load.warm_up_s + load.seconds)
            process.wait(_SILENCE_S)
        finally:
            process.kill()
            process.communicate()
        missing = {"send", "consume", "batch"} - measured.phases.keys()
        if missing:
            said = Path(errors.name).read_text(errors="replace")[-3000:]
            raise ClientFailed(f"the Java client did not come to {', '.join(sorted(missing))}:\n{said}")
        return measured


def follow(process: "subprocess.Popen[bytes]", server_pids: list[int], silence_s: float) -> Measured:
    """Read what the client says until it ends, and look at the server at each `begin` and `end`."""
    assert process.stdout is not None
    measured = Measured()
    cpu_before, in_phase, heard_at, said = 0.0, False, time.monotonic(), b""
    while True:
        if not select.select([process.stdout], [], [], _SAMPLE_S)[0]:
            if in_phase:
                measured.loaded_memory = _larger(measured.loaded_memory, server_usage.memory(server_pids))
            if time.monotonic() - heard_at > silence_s:
                raise ClientFailed(f"the Java client said nothing for {silence_s:.0f} s")
            continue
        cpu_now = server_usage.cpu_seconds(server_pids)
        chunk = os.read(process.stdout.fileno(), 65536)
        if not chunk:
            return measured
        heard_at = time.monotonic()
        *lines, said = (said + chunk).split(b"\n")
        for line in lines:
            word, _, rest = line.decode().partition(" ")
            name, _, result = rest.partition(" ")
            if word == "begin":
                cpu_before, in_phase = cpu_now, name != "warm-up"
            elif word == "end" and in_phase:
                in_phase = False
                fields = json.loads(result)
                fields.pop("expected", None)
                measured.phases[name] = Phase(server_cpu_s=cpu_now - cpu_before, **fields)


def _larger(one: server_usage.Memory, other: server_usage.Memory) -> server_usage.Memory:
    return server_usage.Memory(max(one.anonymous, other.anonymous), max(one.private, other.private))


def _compiled(apache: Apache) -> Path:
    source = JAVA_SOURCES / "ClientLoad.java"
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    classes = cache_directory() / apache.version / f"bench-{digest}"
    if not classes.exists():
        scratch = classes.with_name(f"{classes.name}-{os.getpid()}")
        done = run_bounded(
            ["javac", "-nowarn", "-encoding", "UTF-8", "-d", str(scratch), "-cp", apache.classpath, str(source)],
            _JAVAC_TIMEOUT_S,
        )
        if done.exit_code != 0:
            raise ClientFailed(f"javac refused {source.name}:\n{done.stderr}")
        with contextlib.suppress(FileExistsError):
            scratch.rename(classes)
    return classes
