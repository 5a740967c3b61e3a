"""Redis Streams with its own redis-benchmark: XADD, then XREADGROUP of 32 at a time."""

import csv
import subprocess
import time

from bench.load import server_usage
from bench.load.own_server import WORK
from bench.peers.debian import unpacked
from bench.peers.other_system import OtherResult, ToolFailed
from bench.peers.processes import NotReady, await_ready, folder, free_ports, listens, process, run_watched

_PACKAGES = ("redis-server", "redis-tools", "liblzf1", "libjemalloc2", "libatomic1")
_CONNECTIONS = 64
_CONSUMERS = 8
_PER_READ = 32
_EXPECTED_RATE = 40_000  # messages per second: only to turn seconds into a number of requests
_PATIENCE = 10  # times longer than expected


def measure(warm_up_s: float, seconds: float) -> OtherResult:
    """Run it; raises Missing or ToolFailed."""
    redis = unpacked(_PACKAGES)
    (port,) = free_ports(1)
    with folder(WORK, "redis-") as home:
        server = [redis.program("usr/bin/redis-server"), "--port", str(port), "--bind", "127.0.0.1", "--dir", str(home)]
        server += ["--appendonly", "yes", "--appendfsync", "everysec", "--save", ""]
        began = time.monotonic()
        with process(server, home, "redis", redis.environment) as running:
            try:
                await_ready(running, home / "redis.log", lambda: listens(port))
            except NotReady as error:
                raise ToolFailed(str(error)) from error
            ready, pids = time.monotonic() - began, [running.pid]
            time.sleep(1)
            idle = server_usage.memory(pids).anonymous / 1e6
            tool = [redis.program("usr/bin/redis-benchmark"), "-p", str(port), "--csv"]

            def benchmark(connections: int, requests: int, *command: str) -> tuple[dict[str, str], float, float]:
                done = run_watched(
                    [*tool, "-c", str(connections), "-n", str(requests), *command],
                    pids,
                    home,
                    30 + requests / _EXPECTED_RATE * _PATIENCE,
                    redis.environment,
                )
                lines = list(csv.DictReader(line for line in done.output.splitlines() if line.startswith('"')))
                if not lines:
                    raise ToolFailed(f"redis-benchmark printed no figures: {done.output[-300:]}")
                return lines[-1], done.server_cpu_s, done.loaded_mb

            body = "x" * 128
            if warm_up_s:
                benchmark(_CONNECTIONS, int(warm_up_s * _EXPECTED_RATE) or 1, "XADD", "warm-up", "*", "body", body)
            messages = max(int(seconds * _EXPECTED_RATE) // _PER_READ, 1) * _PER_READ
            sent, sent_cpu, loaded = benchmark(_CONNECTIONS, messages, "XADD", "bench", "*", "body", body)
            cli = [redis.program("usr/bin/redis-cli"), "-p", str(port), "XGROUP", "CREATE", "bench", "group", "0"]
            subprocess.run(cli, env=redis.environment, check=True, timeout=30, stdout=subprocess.DEVNULL)
            reading = ("XREADGROUP", "GROUP", "group", "one", "COUNT", str(_PER_READ), "NOACK", "STREAMS", "bench", ">")
            read, read_cpu, loaded_later = benchmark(_CONSUMERS, messages // _PER_READ, *reading)
    return OtherResult(
        name="Redis Streams 7.0",
        durability="in memory; log written, fsync every second",
        tool=f"redis-benchmark, {_CONNECTIONS} connections; XREADGROUP of {_PER_READ}, no ack",
        publish_rate=float(sent["rps"]),
        publish_cpu_us=sent_cpu / messages * 1e6,
        publish_p50_ms=float(sent["p50_latency_ms"]),
        publish_p99_ms=float(sent["p99_latency_ms"]),
        consume_rate=float(read["rps"]) * _PER_READ,
        consume_cpu_us=read_cpu / messages * 1e6,
        idle_mb=idle,
        loaded_mb=max(loaded, loaded_later),
        seconds_to_ready=ready,
    )
