"""The table of Spark's sources side by side; what it measures needs two servers and Maven."""

import os
import subprocess
import sys

from bench.pipeline.peers import table
from bench.pipeline.peers_program import Measured, cpu_of_all


def test_every_row_is_compared_with_kafkas_of_the_same_kind() -> None:
    rows = [
        Measured("kafka", "Spark's kafka", "batch", 2.0, 3.0, 1.0),
        Measured("rocketmq", "rocketmq, all columns", "batch", 4.0, 5.0, 0.5),
        Measured("kafka", "Spark's kafka", "streaming", 8.0, 3.0, 1.0),
        Measured("rocketmq", "rocketmq, all columns", "streaming", 4.0, 5.0, 0.5),
    ]
    lines = table(rows, 8_000).splitlines()[2:]
    assert lines[1] == "| batch | rocketmq, all columns | 2,000 | 5.00 | 0.50 | 0.50 |"
    assert lines[3] == "| streaming | rocketmq, all columns | 2,000 | 5.00 | 0.50 | 2.00 |"


def test_processor_time_counts_children_that_have_ended() -> None:
    before = cpu_of_all([os.getpid()])
    own = os.times()
    subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 0.3: pass"], check=True)
    mine = os.times().user + os.times().system - own.user - own.system
    assert cpu_of_all([os.getpid()]) - before >= mine + 0.2
