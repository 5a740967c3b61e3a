"""Threads for plain handlers: no more than are needed, no more than are allowed, and none that an exit waits for."""

import subprocess
import sys
import threading
from concurrent.futures import Future, wait

import pytest

from skyrocket.client.consumer.handler_threads import HandlerThreads


def test_results_and_errors_come_back_and_an_idle_thread_is_used_again() -> None:
    threads = HandlerThreads(4, "handlers")
    names = set()
    for _ in range(20):
        future = threads.submit(lambda: threading.current_thread().name)
        names.add(future.result(60))
        while not threads._idle._value:  # it is idle a moment after its result
            pass
    assert names == {"handlers_0"}
    with pytest.raises(ZeroDivisionError):
        threads.submit(lambda: 1 / 0).result(60)
    threads.shutdown()
    with pytest.raises(RuntimeError, match="have been shut down"):
        threads.submit(int)


def test_at_most_so_many_run_at_once_and_what_has_not_begun_can_be_dropped() -> None:
    threads = HandlerThreads(3, "handlers")
    go = threading.Event()
    running = threading.Barrier(4)

    def work() -> int:
        if not go.is_set():
            running.wait(60)
            go.wait(60)
        return 1

    futures: list[Future[int]] = [threads.submit(work) for _ in range(5)]
    running.wait(60)  # three of them, and the test
    assert len(threads._threads) == 3
    threads.shutdown(wait=False, cancel_futures=True)
    go.set()
    wait(futures, 60)
    assert [future.cancelled() for future in futures] == [False, False, False, True, True]
    assert [future.result() for future in futures[:3]] == [1, 1, 1]


def test_an_exit_does_not_wait_for_a_call_that_never_ends() -> None:
    program = (
        "import threading, time\n"
        "from skyrocket.client.consumer.handler_threads import HandlerThreads\n"
        "threads, begun = HandlerThreads(2, 'handlers'), threading.Event()\n"
        "threads.submit(lambda: (begun.set(), time.sleep(3600)))\n"
        "begun.wait(60)\n"
        "threads.shutdown(wait=False, cancel_futures=True)\n"
        "print('bye')\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100)
    assert (ended.returncode, ended.stdout) == (0, "bye\n"), ended.stderr
