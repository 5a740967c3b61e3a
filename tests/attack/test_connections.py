"""Connections that want nothing but to be there: idle ones, unfinished frames, half-open HTTP requests."""

import contextlib
import socket
import struct
from pathlib import Path

import pytest

from tests.attack.attackers import connections, frame, is_closed
from tests.attack.honest import HonestClient
from tests.attack.target import Target
from tests.cluster.broker.broker_fixture import message
from tests.waiting import wait_until

OPEN_FILES = 512


def test_more_idle_connections_than_file_descriptors_stop_no_write(tmp_path: Path) -> None:
    with Target(tmp_path, open_files=OPEN_FILES) as target, HonestClient(target.broker) as honest:
        quiet = honest.during(2.0)
        with contextlib.ExitStack() as stack:
            for number, server in enumerate((target.broker, target.name_server, target.broker)):
                stack.enter_context(connections(server, 250, source=f"127.0.0.{number + 2}"))
            attacked = honest.during(3.0)
            attacked.must_be_served(quiet, f"750 idle connections at ulimit -n {OPEN_FILES}")
            status, text = target.page("/ready")
            assert status == 503
            assert "file descriptors" in text
            with socket.create_connection(("127.0.0.1", target.metrics_port)):
                assert target.page("/health")[0] == 200
        wait_until(lambda: target.page("/ready")[0] == 200)
        honest.during(1.0).must_be_served(quiet, "after them")
        assert any("connections are refused" in line for line in target.lines)


def test_one_address_cannot_take_all_places(tmp_path: Path) -> None:
    with (
        Target(tmp_path, open_files=OPEN_FILES) as target,
        connections(target.broker, 250, source="127.0.0.2") as idle,
        HonestClient(target.broker) as honest,
    ):
        assert sum(map(is_closed, idle)) >= 100
        assert not honest.during(1.0).failures
        assert target.page("/ready")[0] == 200


@pytest.mark.slow
def test_9_000_idle_connections_disturb_nobody(tmp_path: Path) -> None:
    with Target(tmp_path) as target, HonestClient(target.broker) as honest:
        quiet, before = honest.during(3.0), target.resident_mb
        with connections(target.broker, 9000, source="127.0.0.2"):
            honest.during(10.0).must_be_served(quiet, "9,000 idle connections", strict=True)
            assert target.resident_mb - before < 100


def test_unfinished_frames_cost_a_bounded_amount_of_memory(tmp_path: Path) -> None:
    size = 12 << 20
    part = struct.pack(">ii", (16 << 20) - 4, 100) + bytes(size)
    with Target(tmp_path) as target, HonestClient(target.broker) as honest:
        quiet, before = honest.during(2.0), target.resident_mb
        with connections(target.broker, 50) as sockets:
            honest.figures()
            for connection in sockets:
                with contextlib.suppress(OSError):
                    connection.sendall(part)
            attacked = honest.during(1.0)
            grown = target.peak_mb - before
            closed = sum(map(is_closed, sockets))
        attacked.must_be_served(quiet, f"50 frames of 12 of 16 MiB: +{grown:.0f} MB, {closed} were given up")
        assert grown < 300  # of 600
        assert 30 <= closed < 50


def test_an_honest_large_message_passes_between_unfinished_ones(tmp_path: Path) -> None:
    part = struct.pack(">ii", (16 << 20) - 4, 100) + bytes(1 << 20)
    large = frame(message("Large"), bytes(4_000_000))
    with (
        Target(tmp_path, "maxUnfinishedFrameBytes=16777216") as target,
        connections(target.broker, 40) as idle,
        connections(target.broker, 1) as (honest,),
    ):
        for connection in idle[:20]:
            connection.sendall(part)
        honest.sendall(large[:2_000_000])
        for connection in idle[20:]:
            connection.sendall(part)
        honest.sendall(large[2_000_000:])
        honest.settimeout(60.0)
        assert b'"code":0' in honest.recv(1 << 16)


def test_health_answers_beside_300_half_open_http_connections(tmp_path: Path) -> None:
    with Target(tmp_path) as target, connections(f"127.0.0.1:{target.metrics_port}", 300) as half_open:
        for connection in half_open:
            with contextlib.suppress(OSError):
                connection.sendall(b"GET /hea")
        for path in ("/health", "/ready", "/metrics"):
            assert target.page(path)[0] == 200


@pytest.mark.parametrize("server", ["broker", "name_server"])
def test_nobody_says_on_his_own_whose_connection_it_is(tmp_path: Path, server: str) -> None:
    with Target(tmp_path) as target:
        with connections(getattr(target, server), 1) as (liar,):
            liar.sendall(b"PROXY TCP4 10.10.103.7 10.0.0.9 8080 1\r\n" + frame(message()))
            wait_until(lambda: is_closed(liar))
        assert target.await_line("a connection was refused .*proxyProtocolNetworks")
