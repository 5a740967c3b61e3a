"""Words of mqadmin that RocketMQ's tool prints: headings of brokers, times."""

import pytest

from skyrocket.cli.mqadmin.java_text import moment_ms, time_digits, time_ms, time_s
from skyrocket.cli.mqadmin.targets import heading_of
from skyrocket.client import BrokerPlace
from skyrocket.errors import ConfigError


def test_a_heading_tells_masters_from_slaves() -> None:
    master, slave = BrokerPlace("C", "broker-a", 0, "a:1"), BrokerPlace("C", "broker-a", 1, "a:2")
    orphan, bare = BrokerPlace("C", "broker-b", 1, "b:2"), BrokerPlace("", "", 0, "c:1")
    places = [master, slave, orphan]
    assert heading_of(master, places) == "============Master: a:1============"
    assert heading_of(slave, places) == "============My Master: a:1=====Slave: a:2============"
    assert heading_of(orphan, places) == "============My Master: NO_MASTER=====Slave: b:2============"
    assert heading_of(bare, [bare]) == "============c:1============"


def test_a_time_that_no_calendar_has_is_a_number() -> None:
    for ms in ((1 << 63) - 1, -(1 << 63), 10**15):
        assert (time_ms(ms), time_s(ms), time_digits(ms)) == (str(ms),) * 3


def test_milliseconds_behind_a_time_are_counted_not_cut() -> None:
    moment = moment_ms("2026-01-31#12:00:00:000")
    assert moment_ms("2026-01-31#12:00:00:5") == moment + 5
    assert moment_ms("2026-1-31#12:0:0:034") == moment + 34
    assert moment_ms("-3600000") == -3600000
    for text in ("2026-01-31#12:00:00", "1_000", "9" * 20, "0001-01-01#00:00:00:x"):
        with pytest.raises(ConfigError):
            moment_ms(text)
