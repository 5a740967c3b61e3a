"""RabbitMQ with its own PerfTest: publishers that wait for each confirm, then one consumer of what they left."""

import os
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.load import server_usage
from bench.load.own_server import WORK
from bench.peers.debian import Unpacked, unpacked
from bench.peers.maven import classpath
from bench.peers.other_system import OtherResult, ToolFailed
from bench.peers.processes import NotReady, await_ready, folder, free_ports, listens, process, run_watched

_PACKAGES = tuple(
    "rabbitmq-server erlang-base erlang-crypto erlang-eldap erlang-inets erlang-mnesia erlang-os-mon erlang-parsetools "
    "erlang-public-key erlang-runtime-tools erlang-ssl erlang-syntax-tools erlang-tools erlang-xmerl erlang-asn1 "
    "erlang-ftp erlang-tftp erlang-snmp libsctp1".split()
)
_PERF_TEST = "2.16.0"
_PUBLISHERS = 64
_GRACE_S = 60.0
_CONSUMED_SHARE = 0.9  # of what was sent: the exact number is not printed
_CONFIRM_LATENCY = re.compile(r"min/median/75th/95th/99th confirm latency: \d+/(\d+)/\d+/\d+/(\d+) µs")


def measure(warm_up_s: float, seconds: float) -> OtherResult:
    """Run it; raises Missing or ToolFailed."""
    jars = _perf_test()
    with rabbit_server() as server:
        pids, home = server.pids, server.home
        time.sleep(3)
        idle = server_usage.memory(pids).anonymous / 1e6

        def perf_test(length_s: float, *how: str) -> tuple[str, float, float]:
            tool = [
                "java",
                "-Xmx512m",
                "-cp",
                jars,
                "com.rabbitmq.perf.PerfTest",
                "-h",
                f"amqp://127.0.0.1:{server.port}",
            ]
            done = run_watched([*tool, "-f", "persistent", *how], pids, home, length_s + _GRACE_S)
            return done.output, done.server_cpu_s, done.loaded_mb

        def publish(queue: str, length_s: float) -> tuple[str, float, float]:
            length = max(round(length_s), 1)
            publishing = ["-x", str(_PUBLISHERS), "-y", "0", "-u", queue, "-s", "128", "-c", "1"]
            return perf_test(length, *publishing, "-z", str(length + 1), "-i", str(length))

        if warm_up_s:
            publish("warm-up", warm_up_s)
        said, sent_cpu, loaded = publish("measured", seconds)
        sent_rate = _average(said, "sending")
        sent = sent_rate * (max(round(seconds), 1) + 1)
        latency = [match for match in _CONFIRM_LATENCY.finditer(said) if int(match[1])][-1:]
        wanted = max(int(sent * _CONSUMED_SHARE), 1)
        said, read_cpu, loaded_later = perf_test(
            120.0, "-x", "0", "-y", "1", "-u", "measured", "-q", "500", "-A", "100", "-D", str(wanted)
        )
    return OtherResult(
        name="RabbitMQ 3.10",
        durability="persistent in a durable classic queue, confirmed after fsync",
        tool=f"PerfTest {_PERF_TEST}, {_PUBLISHERS} publishers, one unconfirmed each; one consumer, acks by 100",
        publish_rate=sent_rate,
        publish_cpu_us=sent_cpu / max(sent, 1) * 1e6,
        publish_p50_ms=int(latency[0][1]) / 1000 if latency else None,
        publish_p99_ms=int(latency[0][2]) / 1000 if latency else None,
        consume_rate=_average(said, "receiving"),
        consume_cpu_us=read_cpu / wanted * 1e6,
        idle_mb=idle,
        loaded_mb=max(loaded, loaded_later),
        seconds_to_ready=server.seconds_to_ready,
    )


@dataclass(frozen=True)
class RabbitServer:
    """A server that accepts connections."""

    port: int
    pids: list[int]
    seconds_to_ready: float
    home: Path


@contextmanager
def rabbit_server() -> Iterator[RabbitServer]:
    """Start it on free ports; raises Missing or ToolFailed."""
    rabbit = unpacked(_PACKAGES)
    port, distribution_port, mapper_port = free_ports(3)
    with folder(WORK, "rabbitmq-") as home, ExitStack() as stack:
        erlang = _erlang(rabbit, home)
        environment = {
            **rabbit.environment,
            "PATH": f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "RABBITMQ_MNESIA_BASE": str(home / "mnesia"),
            "RABBITMQ_LOG_BASE": str(home / "log"),
            "RABBITMQ_NODENAME": f"bench{port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(port),
            "RABBITMQ_DIST_PORT": str(distribution_port),
            "RABBITMQ_CONFIG_FILE": str(home / "none"),
            "RABBITMQ_CONF_ENV_FILE": str(home / "env.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "plugins"),
            "ERL_EPMD_PORT": str(mapper_port),
        }
        (home / "env.conf").touch()
        (home / "plugins").write_text("[].\n")
        mapper = [str(next(erlang.glob("erts-*")) / "bin" / "epmd"), "-port", str(mapper_port), "-address", "127.0.0.1"]
        stack.enter_context(process(mapper, home, "epmd", environment))
        began = time.monotonic()
        command = [str(next(rabbit.root.glob("usr/lib/rabbitmq/lib/rabbitmq_server-*")) / "sbin" / "rabbitmq-server")]
        running = stack.enter_context(process(command, home, "rabbitmq", environment))
        try:
            await_ready(running, home / "rabbitmq.log", lambda: listens(port))
        except NotReady as error:
            raise ToolFailed(str(error)) from error
        ready = time.monotonic() - began
        yield RabbitServer(port, server_usage.pids_listening_on(port), ready, home)


def _average(said: str, what: str) -> float:
    rate = re.search(rf"{what} rate avg: (\d+) msg/s", said)
    if rate is None:
        raise ToolFailed(f"PerfTest printed no {what} rate: {said[-300:]}")
    return float(rate[1])


def _erlang(rabbit: Unpacked, home: Path) -> Path:
    """Erlang's start script believes that it stands in /usr/lib/erlang: a copy in home/bin that knows better."""
    erlang = rabbit.root / "usr" / "lib" / "erlang"
    script = home / "bin" / "erl"
    script.parent.mkdir()
    script.write_text((erlang / "bin" / "erl").read_text().replace("/usr/lib/erlang", str(erlang)))
    script.chmod(0o755)
    return erlang


def _perf_test() -> str:
    return classpath(
        f"perf-test-{_PERF_TEST}", f"com.rabbitmq:perf-test:{_PERF_TEST}", "ch.qos.logback:logback-classic:1.2.12"
    )
