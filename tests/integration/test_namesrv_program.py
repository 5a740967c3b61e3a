"""`skyrocket namesrv` as a program: ready, signals, and why it does not start."""

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

READY = re.compile(r"The Name Server boot success\. address=\S+:(\d+)")


def started(*arguments: str, home: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "skyrocket", "namesrv", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "HOME": str(home)},
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_program_takes_a_rocketmq_conf_says_when_it_is_ready_and_stops_on_a_signal(
    tmp_path: Path, number: signal.Signals
) -> None:
    conf = tmp_path / "namesrv.conf"
    conf.write_text("listenPort=0\nbindAddress=127.0.0.1\nserverWorkerThreads=8\nlisenPort=1\n")
    process = started("-c", str(conf), home=tmp_path)
    try:
        assert process.stdout is not None
        ready = READY.match(process.stdout.readline())
        assert ready is not None
        with socket.create_connection(("127.0.0.1", int(ready[1])), timeout=60):
            process.send_signal(number)
            _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0
    assert errors == "skyrocket namesrv: unknown setting 'lisenPort' has no effect; did you mean 'listenPort'?\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["namesrv.conf"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        pytest.param(["--listen-port", "{taken}"], 1, r"port {taken} is taken .* --listen-port", id="port-taken"),
        pytest.param(["-c", "none.conf"], 2, r"none\.conf cannot be read", id="no-conf"),
        pytest.param(["--set", "lisenPort=1"], 2, r"did you mean 'listenPort'", id="unknown-setting"),
        pytest.param(["--set", "listenPort=many"], 2, r"listenPort='many' is not a whole number", id="no-number"),
    ],
)
def test_the_program_says_why_it_does_not_start(tmp_path: Path, arguments: list[str], code: int, words: str) -> None:
    with socket.create_server(("0.0.0.0", 0)) as taken:
        port = str(taken.getsockname()[1])
        process = started(*(text.replace("{taken}", port) for text in arguments), home=tmp_path)
        out, errors = process.communicate(timeout=60)
    assert (process.returncode, out) == (code, "")
    assert re.search(words.replace("{taken}", port), errors)
