"""NATS JetStream with its own `nats bench`: synchronous publishers to a stream in files, then one ordered consumer."""

import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

from tests.interop.apache import cache_directory, run_bounded

from bench.load import server_usage
from bench.load.own_server import WORK
from bench.peers.debian import unpacked
from bench.peers.other_system import Missing, OtherResult, ToolFailed
from bench.peers.processes import NotReady, await_ready, folder, free_ports, listens, process, run_watched

_TOOL_VERSION = "v0.1.5"  # the last one before `nats bench` was taken apart into subcommands
_BUILD_TIMEOUT_S = 400
_PUBLISHERS = 64
_EXPECTED_RATE = 20_000  # messages per second: only to turn seconds into a number of messages
_PATIENCE = 10
_RATE = re.compile(r"(?:Pub|Sub) stats: ([\d,]+) msgs/sec")


def measure(warm_up_s: float, seconds: float) -> OtherResult:
    """Run it; raises Missing or ToolFailed."""
    nats = unpacked(("nats-server",))
    tool = _tool()
    (port,) = free_ports(1)
    with folder(WORK, "nats-") as home:
        server = [nats.program("usr/sbin/nats-server"), "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(home)]
        began = time.monotonic()
        with process(server, home, "nats", nats.environment) as running:
            try:
                await_ready(running, home / "nats.log", lambda: listens(port))
            except NotReady as error:
                raise ToolFailed(str(error)) from error
            ready, pids = time.monotonic() - began, [running.pid]
            time.sleep(1)
            idle = server_usage.memory(pids).anonymous / 1e6

            def bench(messages: int, *how: str) -> tuple[float, float, float]:
                command = [tool, "-s", f"nats://127.0.0.1:{port}", "bench", "bench", "--js", "--no-progress"]
                command += ["--msgs", str(messages), "--size", "128", "--storage", "file"]
                done = run_watched([*command, *how], pids, home, 60 + messages / _EXPECTED_RATE * _PATIENCE)
                rate = _RATE.search(done.output)
                if rate is None:
                    raise ToolFailed(f"`nats bench` printed no rate: {done.output[-300:]}")
                return float(rate[1].replace(",", "")), done.server_cpu_s, done.loaded_mb

            publish = ("--pub", str(_PUBLISHERS), "--syncpub", "--purge", "--maxbytes", "8GB")
            if warm_up_s:
                bench(int(warm_up_s * _EXPECTED_RATE) or 1, *publish)
            messages = max(int(seconds * _EXPECTED_RATE), 1)
            sent_rate, sent_cpu, loaded = bench(messages, *publish)
            read_rate, read_cpu, loaded_later = bench(messages, "--maxbytes", "8GB", "--sub", "1")
    return OtherResult(
        name="NATS JetStream 2.9",
        durability="written to a file, fsync every 2 minutes",
        tool=f"nats bench, {_PUBLISHERS} synchronous publishers; one ordered consumer",
        publish_rate=sent_rate,
        publish_cpu_us=sent_cpu / messages * 1e6,
        publish_p50_ms=None,
        publish_p99_ms=None,
        consume_rate=read_rate,
        consume_cpu_us=read_cpu / messages * 1e6,
        idle_mb=idle,
        loaded_mb=max(loaded, loaded_later),
        seconds_to_ready=ready,
    )


def _tool() -> str:
    """The `nats` program: from the PATH if it is of the right kind, else built from its module."""
    built = cache_directory() / f"natscli-{_TOOL_VERSION}" / "nats"
    if built.exists():
        return str(built)
    if shutil.which("go") is None:
        raise Missing("its load tool `nats` is built with Go, and go is not on the PATH")
    module = f"github.com/nats-io/natscli@{_TOOL_VERSION}"
    try:
        fetched = run_bounded(["go", "mod", "download", "-json", module], _BUILD_TIMEOUT_S)
        if fetched.exit_code != 0:
            raise Missing(f"go does not give {module}: {(fetched.stdout + fetched.stderr)[-300:]}")
        source = Path(json.loads(fetched.stdout)["Dir"])
        built.parent.mkdir(parents=True, exist_ok=True)
        scratch = built.with_name(f"nats-{os.getpid()}")
        # In the module's own directory, where its go.sum counts.
        done = run_bounded(["go", "build", "-mod=readonly", "-o", str(scratch), "./nats"], _BUILD_TIMEOUT_S, cwd=source)
    except subprocess.TimeoutExpired:
        raise Missing(f"{module} was not built within {_BUILD_TIMEOUT_S} s") from None
    if done.exit_code != 0:
        raise Missing(f"{module} does not build: {done.stderr[-300:]}")
    scratch.rename(built)
    return str(built)
