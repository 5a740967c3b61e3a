"""`skyrocket worker` and `consumer.run()` as processes: signals, draining, several processes, reload, pages, logs."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from skyrocket import Message, blocking
from skyrocket.testing import LocalCluster
from tests.http_get import get
from tests.integration.program import Program, alive, children_of
from tests.ports import free_port
from tests.waiting import wait_until

APPLICATION = """
import asyncio
import logging
import os
import sys
import time
from pathlib import Path

from skyrocket import ConsumeFromWhere, PushConsumer, PushConsumerSettings

HERE = Path(__file__).parent
settings = PushConsumerSettings(consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)
consumer = PushConsumer("Billing", settings=settings)
others = [consumer, PushConsumer("Mail", settings=settings)]


def note(text):
    with open(HERE / "seen.txt", "a") as file:
        file.write(f"{text} {os.getpid()}\\n")


@consumer.on("Orders")
async def order(body: str) -> None:
    note(f"began {body}")
    logging.getLogger("shop").warning("working on %s", body)
    while body == "slow" and not (HERE / "go").exists():
        await asyncio.sleep(0.01)
    note(f"done {body}")


@others[1].on("Orders")
def mail(body: str) -> None:
    if body == "stuck":
        note("began to mail")
        time.sleep(3600)
    note(f"mailed {body}")


def make():
    return consumer


def wants_an_argument(x): ...


text = "no consumer"

if __name__ == "__main__":
    consumer.run(drain=30)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(APPLICATION)
    (tmp_path / "torn.py").write_text("def (\n")
    (tmp_path / "needy.py").write_text("import no_such_library\n")
    (tmp_path / "failing.py").write_text("def read():\n    return {}['x']\n\n\nconsumer = read()\n")
    return tmp_path


def seen(folder: Path) -> list[str]:
    path = folder / "seen.txt"
    return path.read_text().splitlines() if path.exists() else []


def texts(folder: Path) -> list[str]:
    return [line.rpartition(" ")[0] for line in seen(folder)]


def worker(folder: Path, names: str, *options: str, target: str = "shop:consumer") -> Program:
    return Program("worker", target, "--app-dir", str(folder), "-n", names, *options, home=folder)


def test_sigterm_lets_running_handlers_end_and_repeats_nothing(folder: Path, rocketmq: LocalCluster) -> None:
    names = rocketmq.name_server_address
    with blocking.Producer("Shop", names) as producer, worker(folder, names, "--json-logs") as program:
        program.await_line(r"worker 0 \(pid \d+\): push consumer Billing consumes Orders")
        producer.send("Orders", "slow")
        wait_until(lambda: texts(folder) == ["began slow"])
        program.process.send_signal(signal.SIGTERM)
        program.await_line(r"worker 0 \(pid \d+\) stops: handlers have 30 s to end")
        (folder / "go").touch()
        assert program.process.wait(60) == 0
        program.await_line("has stopped")
        (line,) = (json.loads(line) for line in program.lines if '"working on slow"' in line)
        assert (line["topic"], line["group"], line["level"]) == ("Orders", "Billing", "WARNING")
        assert len(line["message_id"]) == 32
        with worker(folder, names) as second:
            producer.send("Orders", "next")
            wait_until(lambda: "done next" in texts(folder))
            assert second.stop() == 0
    assert texts(folder) == ["began slow", "done slow", "began next", "done next"]


def test_a_handler_that_takes_longer_than_the_drain_is_left_and_its_message_comes_again(
    folder: Path, rocketmq: LocalCluster
) -> None:
    names = rocketmq.name_server_address
    with blocking.Producer("Shop", names) as producer, worker(folder, names, "--drain", "100ms") as program:
        producer.send("Orders", "slow")
        wait_until(lambda: texts(folder) == ["began slow"])
        assert program.stop() == 0
        program.await_line("1 handler has not ended within 0.1 s and will not be waited for, the messages come again")
        (folder / "go").touch()
        with worker(folder, names) as second:
            wait_until(lambda: "done slow" in texts(folder))
            assert second.stop() == 0
    assert texts(folder) == ["began slow", "began slow", "done slow"]


def test_a_plain_function_that_never_returns_does_not_keep_the_worker_alive(
    folder: Path, rocketmq: LocalCluster
) -> None:
    names = rocketmq.name_server_address
    application = worker(folder, names, "--drain", "100ms", target="shop:others")
    with blocking.Producer("Shop", names) as producer, application as program:
        producer.send("Orders", "stuck")
        wait_until(lambda: "began to mail" in texts(folder))
        assert program.stop() == 0, "a thread that sleeps for an hour is not waited for"
        program.await_line("1 handler has not ended within 0.1 s")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_script_that_runs_its_consumer_ends_in_order_on_a_signal(
    folder: Path, rocketmq: LocalCluster, number: signal.Signals
) -> None:
    environment = {**os.environ, "NAMESRV_ADDR": rocketmq.name_server_address}
    script = subprocess.Popen(
        [sys.executable, str(folder / "shop.py")], env=environment, stderr=subprocess.PIPE, text=True
    )
    try:
        with blocking.Producer("Shop", rocketmq.name_server_address) as producer:
            producer.send("Orders", "slow")
            wait_until(lambda: texts(folder) == ["began slow"])
        script.send_signal(number)
        (folder / "go").touch()
        _, said = script.communicate(timeout=60)
    finally:
        script.kill()
    assert (script.returncode, texts(folder)) == (0, ["began slow", "done slow"])
    assert "Traceback" not in said


def test_several_processes_share_the_queues_and_a_dead_one_is_started_again(
    folder: Path, rocketmq: LocalCluster
) -> None:
    names = rocketmq.name_server_address
    port = free_port()
    with (
        blocking.Producer("Shop", names) as producer,
        worker(folder, names, "--processes", "2", "--port", str(port), "--concurrency", "3") as program,
    ):
        producer.send("Orders", "first")
        for number in (0, 1):
            program.await_line(rf"worker {number} \(pid \d+\).*:{port + number}/metrics")
            wait_until(partial(_is_ready, port + number))
            assert get(port + number, "/health") == (200, '{"status": "alive"}\n')
        wait_until(lambda: _queues(port) + _queues(port + 1) == 4 and _queues(port) == 2, "each has half")
        first, second = (int(program.await_line(rf"worker {number} \(pid (\d+)\)")[1]) for number in (0, 1))
        assert children_of(program.process.pid) == sorted((first, second))
        os.kill(first, signal.SIGKILL)
        program.await_line(r"worker 0 ended by SIGKILL; it is started again in 0\.5 s")
        program.await_line(r"worker 0 \(pid \d+\): push consumer", count=2)
        for number in range(8):
            producer.send("Orders", str(number))
        wait_until(lambda: len([text for text in texts(folder) if text.startswith("done")]) >= 9)
        page = get(port + 1, "/metrics")[1]
        assert re.search(r'skyrocket_client_handler_calls_total\{group="Billing".*handler="shop\.order"', page)
        assert program.stop() == 0
        assert not any(map(alive, (first, second)))


def _is_ready(port: int) -> bool:
    return get(port, "/ready")[0] == 200


def _queues(port: int) -> int:
    page = get(port, "/metrics")[1]
    found = re.search(r'skyrocket_client_queues_in_hand\{group="Billing",topic="Orders"\} (\d+)', page)
    return 0 if found is None else int(found[1])


def test_reload_starts_it_anew_when_a_file_changes_and_waits_where_it_cannot_be_started(
    folder: Path, rocketmq: LocalCluster
) -> None:
    names = rocketmq.name_server_address
    with blocking.Producer("Shop", names) as producer, worker(folder, names, "--reload") as program:
        program.await_line("consumes Orders")
        (folder / "shop.py").write_text("consumer = 5\n")
        program.await_line("has changed: the worker is started anew")
        program.await_line("shop:consumer is 5: give a PushConsumer, a list of them, or a function that makes them")
        program.await_line("cannot be started; it is tried again when a file changes")
        (folder / "shop.py").write_text(APPLICATION.replace("done {body}", "finished {body}"))
        program.await_line("consumes Orders", count=2)
        producer.send("Orders", "x")
        wait_until(lambda: "finished x" in texts(folder))
        assert program.stop() == 0


def test_it_starts_before_its_cluster_and_says_so(folder: Path) -> None:
    names, metrics = free_port(), free_port()
    with worker(folder, f"127.0.0.1:{names}", "--port", str(metrics)) as program:
        program.await_line("push consumer Billing starts without its cluster, and goes on trying: no name server")
        program.await_line(r"worker 0 \(pid \d+\): push consumer Billing consumes Orders")
        status, page = get(metrics, "/ready")
        assert (status, "are name server and brokers up" in page) == (503, True)
        with Program(
            *("standalone", "--namesrv-port", str(names), "--listen-port", "0", "--broker-ip", "127.0.0.1"),
            *("--store", str(folder / "store"), "--set", "mappedFileSizeCommitLog=4194304"),
            home=folder,
        ) as server:
            server.await_line("is ready")
            program.await_line("push consumer Billing has found its cluster")
            with blocking.Producer("Shop", f"127.0.0.1:{names}") as producer:
                producer.send(Message("Orders", b"late"))
            wait_until(lambda: "done late" in texts(folder))
            assert get(metrics, "/ready")[0] == 200
            assert program.stop() == 0
            assert server.stop() == 0


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("shop", "'shop' names no application: write module:name, as shop.worker:consumer"),
        ("shop:missing", "module shop has no missing; its consumers are: consumer"),
        ("nowhere:consumer", "there is no module nowhere in "),
        ("shop:text", "shop:text is 'no consumer': give a PushConsumer, a list of them, or a function that makes them"),
        ("shop:wants_an_argument", "shop:wants_an_argument cannot be called without arguments"),
        ("shop.py:consumer", "there is no module shop.py in "),
        ("torn:consumer", "module torn cannot be imported:"),
        ("needy:consumer", "module needy cannot be imported:"),
    ],
)
def test_a_target_that_is_no_application_is_wrong_usage(folder: Path, target: str, said: str) -> None:
    with worker(folder, "127.0.0.1:1", target=target) as program:
        assert program.process.wait(60) == 2
        program.await_line(re.escape(f"skyrocket worker: {said}"))


def test_a_module_that_fails_when_it_is_imported_is_shown_without_our_own_frames(folder: Path) -> None:
    with worker(folder, "127.0.0.1:1", target="failing:consumer") as program:
        assert program.process.wait(60) == 1
        program.await_line("KeyError: 'x'")
    assert [line.strip() for line in program.lines if "^" not in line] == [
        "skyrocket worker: module failing cannot be imported:",
        "Traceback (most recent call last):",
        f'File "{folder}/failing.py", line 5, in <module>',
        "consumer = read()",
        f'File "{folder}/failing.py", line 2, in read',
        "return {}['x']",
        "KeyError: 'x'",
    ]


@pytest.mark.parametrize("target", ["shop:make", "shop:others"])
def test_a_function_or_a_list_of_consumers_is_an_application(folder: Path, rocketmq: LocalCluster, target: str) -> None:
    names = rocketmq.name_server_address
    with blocking.Producer("Shop", names) as producer, worker(folder, names, target=target) as program:
        producer.send("Orders", "x")
        expected = {"done x"} if target == "shop:make" else {"done x", "mailed x"}
        wait_until(lambda: expected <= set(texts(folder)))
        assert program.stop() == 0


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_port_that_is_taken_ends_the_worker_and_is_named(
    folder: Path, rocketmq: LocalCluster, processes: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with worker(folder, rocketmq.name_server_address, "--port", str(port), "--processes", processes) as program:
            program.await_line(f"port {port} is taken by another program: stop it, or choose another port with --port")
            assert program.process.wait(60) == 2
