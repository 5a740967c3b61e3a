"""Timers that wait change hands: we park them, Apache RocketMQ delivers; it parks others, and we deliver those."""

import base64
import time
from pathlib import Path

import pytest

from skyrocket.clock import SystemClock
from skyrocket.fastjson import Dialect
from skyrocket.testing.clock import FakeClock
from tests.interop.apache import Apache
from tests.interop.our_store import write_topics
from tests.interop.rocketmq_broker import running_broker
from tests.unit.broker.timer.timed import QUEUE, TOPIC, Timed
from tests.unit.store.stores import small_config

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]

TIMER_LOG = 1040
BY_THEM_MS = 35_000  # they are up by then
BY_US_MS = 600_000


def test_timers_of_ours_are_delivered_by_rocketmq_and_what_is_left_by_us(tmp_path: Path, apache: Apache) -> None:
    if apache.version.startswith("4."):
        pytest.skip(f"RocketMQ {apache.version} has no timers")
    config = small_config(dispatch_thread=False, timer_log_file_size=TIMER_LOG)
    clock = FakeClock(SystemClock().now_ms())
    began_ms = clock.now_ms()
    timed = Timed(tmp_path, clock, config=config)
    timed.put_at(b"delivered by us", began_ms + 1000)
    for number in range(30):  # more than one file of the timer log
        timed.put_at(b"theirs %d" % number, began_ms + BY_THEM_MS + 100 * number)
    timed.put_at(b"recalled", began_ms + BY_THEM_MS)
    timed.put_at(b"left", began_ms + BY_US_MS)
    timed.recall("recalled", began_ms + BY_THEM_MS)
    clock.advance(seconds=2)
    timed.fire()
    assert timed.bodies() == [b"delivered by us"]
    timed.stop()
    write_topics(tmp_path, [TOPIC], Dialect.V5_4)

    settings = {"mappedFileSizeTimerLog": str(TIMER_LOG), "recallMessageEnable": "true"}
    with running_broker(apache, tmp_path, config, settings) as broker:
        time.sleep(max(0.0, (began_ms + BY_THEM_MS + 3000 - SystemClock().now_ms()) / 1000 + 5))
        pulled = broker.exchange([TOPIC], [])
    bodies = [base64.b64decode(line["body"]) for line in pulled.messages]
    assert sorted(bodies) == sorted([b"delivered by us", *(b"theirs %d" % number for number in range(30))])
    early = [
        line for line in pulled.messages if int(line["storeTimestamp"]) < int(line["properties"]["TIMER_DELIVER_MS"])
    ]
    assert not early

    clock = FakeClock(SystemClock().now_ms())
    timed = Timed(tmp_path, clock, config=config)
    timed.fire()
    assert len(timed.delivered(TOPIC, QUEUE)) == 31
    clock.advance(ms=BY_US_MS)
    timed.fire()
    assert timed.bodies()[31:] == [b"left"]
    timed.stop()
