"""The measuring itself: an honest client that nobody disturbs, and one whose server stands still."""

import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.attack.honest import HonestClient
from tests.attack.target import Target
from tests.waiting import wait_until


def test_an_honest_client_notices_a_server_that_stands_still(tmp_path: Path) -> None:
    with Target(tmp_path) as target, HonestClient(target.broker) as honest:
        quiet = honest.during(2.0)
        quiet.must_be_served(quiet, "nobody attacks")
        honest.figures()
        target.process.send_signal(signal.SIGSTOP)
        time.sleep(5.0)
        target.process.send_signal(signal.SIGCONT)
        wait_until(lambda: target.page("/ready")[0] == 200)
        time.sleep(0.5)
        stopped = honest.figures()
    with pytest.raises(AssertionError, match="p99 of sends"):
        stopped.must_be_served(replace(quiet, sends_ms=[1.0]), "stopped for five seconds")
