"""Pages put together are the whole table."""

from hypothesis import given
from hypothesis import strategies as st

from skyrocket.broker.rules.paging import page_of
from skyrocket.model.data_version import DataVersion
from skyrocket.protocol.bodies.topics import DATA_VERSION
from skyrocket.protocol.requests.table_pages import PAGE_ROWS

VERSION = DataVersion(counter=3, timestamp=5)
TEXT = DATA_VERSION.encode(VERSION).decode()


@given(names=st.sets(st.text(max_size=3)), count=st.integers(1, 10))
def test_pages_of_one_version_hold_every_row_once(names: set[str], count: int) -> None:
    table = dict.fromkeys(names, 0)
    collected = list(page_of(table, 0, count, "", VERSION))
    while len(collected) < len(table):
        collected += page_of(table, len(collected), count, TEXT, VERSION)
    assert collected == sorted(names)


def test_whoever_asks_for_no_page_gets_everything_and_nobody_more_than_a_full_page() -> None:
    table = {f"{number:05}": number for number in range(PAGE_ROWS + 5)}
    assert page_of(table, None, None, None, VERSION) == table
    for count in (None, 0, -1, PAGE_ROWS + 1):
        assert len(page_of(table, 0, count, "", VERSION)) == PAGE_ROWS


def test_another_version_begins_again() -> None:
    table = {"a": 1, "b": 2, "c": 3}
    for version in ("", "{}", "no json", None):
        assert list(page_of(table, 1, 1, version, VERSION)) == ["a"]
    assert list(page_of(table, 1, 1, TEXT, VERSION)) == ["b"]
    assert list(page_of(table, -7, 1, TEXT, VERSION)) == ["a"]
