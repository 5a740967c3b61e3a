"""Offset message ids and client unique keys."""

import calendar
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.errors import DataError
from skyrocket.format.message_id import (
    UniqueKeyGenerator,
    host_text,
    offset_message_id,
    parse_host,
    parse_offset_message_id,
)
from skyrocket.model.message import Host
from tests.golden_store import Line
from tests.unit.format.samples import HOSTS, I64

LOCAL = bytes([10, 0, 0, 2])
HOUR_MS = 3_600_000


def utc_ms(year: int, month: int, day: int, hour: int = 0) -> int:
    return calendar.timegm((year, month, day, hour, 0, 0)) * 1000


@pytest.fixture
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The local time zone is UTC, as it was when the golden stores were written."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.requirement("B029", "C096")
def test_an_offset_id_is_host_port_and_physical_offset_in_16_bytes() -> None:
    text = "0A00000200002A9F00000000000000BB"
    assert offset_message_id(Host(LOCAL, 10911), 187) == text
    assert parse_offset_message_id(text) == (Host(LOCAL, 10911), 187)
    assert len(bytes.fromhex(text)) == 4 + 4 + 8


@pytest.mark.requirement("C096")
def test_an_offset_id_of_an_ipv6_host_has_28_bytes() -> None:
    host = parse_host("[fd00::2]:10911")
    text = offset_message_id(host, 187)
    assert text == "FD000000000000000000000000000002" + "00002A9F" + "00000000000000BB"
    assert parse_offset_message_id(text) == (host, 187)
    assert len(bytes.fromhex(text)) == 16 + 4 + 8


@pytest.mark.requirement("B029", "C096")
def test_golden_offset_ids_lead_back_to_their_record(golden_lines: list[Line]) -> None:
    for line in golden_lines:
        if line["kind"] == "message":
            place = parse_offset_message_id(line["offsetMsgId"])
            assert place == (parse_host(line["storeHost"]), line["physicalOffset"])
            assert offset_message_id(*place) == line["offsetMsgId"] == line["msgId"]


@given(HOSTS, I64)
def test_an_offset_id_comes_back(host: Host, physical_offset: int) -> None:
    text = offset_message_id(host, physical_offset)
    assert text == text.upper()
    assert parse_offset_message_id(text) == (host, physical_offset)
    assert parse_offset_message_id(text.lower()) == (host, physical_offset)


@pytest.mark.parametrize(
    "text",
    ["", "0A", "0A00000200002A9F00000000000000B", "0A 00 00 02" * 3, "0A00000200002A9F00000000000000BG", "0" * 40],
)
def test_other_texts_are_no_ids(text: str) -> None:
    with pytest.raises(DataError, match="hexadecimal digits"):
        parse_offset_message_id(text)


@given(st.text(max_size=60))
def test_random_texts_are_no_ids(text: str) -> None:
    with pytest.raises(DataError):
        parse_offset_message_id(text)


def test_blanks_between_the_digits_make_no_id() -> None:
    spaced = "0A00000200002A9F 00000000000000BB"
    with pytest.raises(DataError):
        parse_offset_message_id(spaced)


@pytest.mark.usefixtures("utc")
def test_a_unique_key_is_address_process_loader_time_and_counter() -> None:
    keys = UniqueKeyGenerator(LOCAL, process_id=0x12345, loader_hash=0xCAFEBABE)
    now = utc_ms(2026, 11, 16, 2)
    assert keys.next(now) == "0A000002" + "2345" + "CAFEBABE" + f"{now - utc_ms(2026, 11, 1):08X}" + "0000"
    assert keys.next(now)[-4:] == "0001"


@pytest.mark.usefixtures("utc")
def test_the_counter_of_unique_keys_wraps_after_65536() -> None:
    keys = UniqueKeyGenerator(LOCAL)
    handed_out = [keys.next(1_700_000_000_000) for _ in range(65537)]
    assert len(set(handed_out)) == 65536
    assert handed_out[0] == handed_out[-1]


@pytest.mark.usefixtures("utc")
def test_a_new_month_starts_the_time_anew() -> None:
    keys = UniqueKeyGenerator(LOCAL)
    december = utc_ms(2026, 12, 31, 23)
    january = utc_ms(2027, 1, 1)
    assert int(keys.next(december)[20:28], 16) == december - utc_ms(2026, 12, 1)
    assert int(keys.next(january)[20:28], 16) == 0
    assert int(keys.next(january + 5)[20:28], 16) == 5


@pytest.mark.usefixtures("utc")
def test_a_clock_that_steps_back_a_little_counts_as_the_start_of_the_month() -> None:
    keys = UniqueKeyGenerator(LOCAL)
    january = utc_ms(2027, 1, 1)
    keys.next(january)
    assert int(keys.next(january - 999_999)[20:28], 16) == 0
    assert int(keys.next(january - HOUR_MS)[20:28], 16) == january - HOUR_MS - utc_ms(2026, 12, 1)


@given(HOSTS.filter(lambda host: not host.address.startswith(bytes(10) + b"\xff\xff")))
def test_a_host_comes_back_from_its_text(host: Host) -> None:
    assert parse_host(host_text(host)) == host


def test_hosts_are_written_as_addresses_with_ports() -> None:
    assert host_text(Host(LOCAL, 10911)) == "10.0.0.2:10911"
    assert host_text(Host(bytes(15) + b"\x01", 10911)) == "[::1]:10911"
    assert parse_host("[0:0:0:0:0:0:0:1]:10911") == Host(bytes(15) + b"\x01", 10911)


def test_an_ipv4_address_dressed_as_ipv6_is_ipv4() -> None:
    assert parse_host("[::ffff:10.0.0.2]:10911") == Host(LOCAL, 10911)
