"""The eight bytes of an entry that stand for the tags."""

import pytest

from skyrocket.errors import ConfigError
from skyrocket.format.java_hash import java_hash
from skyrocket.store import tags_code
from skyrocket.store.tags_code import TagsCoder
from skyrocket.testing.clock import FakeClock
from tests.unit.store.stores import Stores


@pytest.mark.requirement("A010")
def test_codes_are_the_same_however_often_they_are_asked_for() -> None:
    coder = TagsCoder("1s")
    for _ in range(3):
        assert coder.code(b"TAGS\x01red\x02") == java_hash("red")
        assert coder.code(b"KEYS\x01TAGS\x02") == 0
        assert coder.code(b"") == 0


def test_negative_hashes_keep_their_sign() -> None:
    tags = "polygenelubricants!"
    assert java_hash(tags) < 0
    assert TagsCoder("").code(b"TAGS\x01" + tags.encode()) == java_hash(tags)


def test_the_memory_of_tags_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tags_code, "_MAX_CACHED", 100)
    coder = TagsCoder("")
    for number in range(300):
        tags = f"tag{number}"
        assert coder.code(f"TAGS\x01{tags}\x02".encode()) == java_hash(tags)
    assert len(coder.known) == 100


@pytest.mark.requirement("C132")
def test_delivery_times_come_from_the_level_table() -> None:
    coder = TagsCoder("1s 5s 1m")
    now = FakeClock().now_ms()
    assert [coder.delivery_time(b"DELAY\x01%d\x02" % level, now) - now for level in (1, 2, 3, 4)] == [
        1000,
        5000,
        60_000,
        60_000,
    ]


def test_levels_that_are_no_durations_are_refused_by_the_name_of_their_setting(stores: Stores) -> None:
    with pytest.raises(ConfigError, match="messageDelayLevel: 'soon'"):
        stores.open(message_delay_levels="1s soon 2h")
