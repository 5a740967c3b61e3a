"""Suites run side by side: no two of their processes may be given the same port."""

import subprocess
import sys

import pytest

from tests import ROOT, ports
from tests.ports import free_port

PROCESSES, EACH = 17, 40
ASKER = f"from tests.ports import free_port; print(*(free_port() for _ in range({EACH})), flush=True); input()"


def asker() -> subprocess.Popen[str]:
    command = [sys.executable, "-c", ASKER]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def answer(process: subprocess.Popen[str]) -> list[int]:
    assert process.stdout is not None
    return [int(port) for port in process.stdout.readline().split()]


def test_processes_that_live_at_the_same_time_are_given_different_ports() -> None:
    processes = [asker() for _ in range(PROCESSES)]
    try:
        given = [port for process in processes for port in answer(process)]
        assert len(given) == PROCESSES * EACH
        assert len(set(given)) == len(given)
    finally:
        for process in processes:
            process.communicate("\n", timeout=60)


def test_a_process_that_has_many_gives_its_oldest_ports_back(monkeypatch: pytest.MonkeyPatch) -> None:
    few = range(12_000, 12_000 + 4 * 300, 4)
    monkeypatch.setattr(ports, "_PORTS", few)
    given = [free_port() for _ in range(2 * len(few))]
    assert all(port not in given[max(0, place - 60) : place] for place, port in enumerate(given))
