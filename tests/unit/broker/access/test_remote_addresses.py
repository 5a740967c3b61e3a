"""Address patterns of ACL 1.0."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.broker.access.remote_addresses import address_pattern
from skyrocket.errors import ConfigError


@pytest.mark.parametrize(
    ("pattern", "inside", "outside"),
    [
        ("", [], ["10.0.0.1", "::1", ""]),
        (" ", [], ["10.0.0.1"]),
        ("*", ["10.0.0.1", "fe80::1"], []),
        ("*.*.*.*", ["1.2.3.4"], []),
        ("*:*:*:*:*:*:*:*", ["fe80::1"], []),
        ("10.0.0.1", ["10.0.0.1"], ["10.0.0.10", "10.0.0.2", "::1", "unknown"]),
        ("10.0.0.1,10.0.0.9", ["10.0.0.1", "10.0.0.9"], ["10.0.0.2"]),
        ("10.0.0.{1,2,30}", ["10.0.0.1", "10.0.0.2", "10.0.0.30"], ["10.0.0.3", "10.0.1.1"]),
        ("10.0.*", ["10.0.0.1", "10.0.255.255"], ["10.1.0.1", "100.0.0.1"]),
        ("10.0.*.*", ["10.0.3.4"], ["10.1.0.0"]),
        ("10.0.0.*", ["10.0.0.0"], ["10.0.10.0"]),
        ("10.0.3-9.*", ["10.0.3.1", "10.0.9.200"], ["10.0.2.1", "10.0.10.1", "10.0.33.1"]),
        ("10.0.0.3-9", ["10.0.0.3", "10.0.0.9"], ["10.0.0.2", "10.0.0.30", "10.0.1.3"]),
        ("10.*", ["10.200.3.4"], ["11.0.0.0"]),
        ("fe80::1", ["fe80::1", "FE80:0:0:0:0:0:0:1"], ["fe80::2", "10.0.0.1"]),
        ("fe80::{1,a}", ["fe80::1", "fe80::A"], ["fe80::2"]),
        ("1050:0000:0000:0000:0005:*", ["1050::5:1:2:3"], ["1050::6:1:2:3", "10.0.0.1"]),
        ("1050:0:0:0:5:20-3f:*:*", ["1050::5:20:0:1", "1050::5:3f:0:1"], ["1050::5:1f:0:1", "1050::5:40:0:1"]),
    ],
)
def test_a_pattern_matches_these_and_not_those(pattern: str, inside: list[str], outside: list[str]) -> None:
    matches = address_pattern(pattern)
    assert [peer for peer in inside if not matches(peer)] == []
    assert [peer for peer in outside if matches(peer)] == []


@pytest.mark.parametrize(
    "pattern",
    [
        *["x", "10.0.0", "10.0.0.256", "10.0.0.1,x", "10.0.{1,2}.3", "10.0.0.{1,x}", "{1}", "10.0.*.1", "10.9-3.*"],
        *[
            "10.0.0.3-300",
            "*.1",
            "3-9.*",
            "1.2.3.4.*",
            "10.a-b.*",
            "fe80:g-h:*",
            "fe80:5-1:*",
            "10.0.0.1-2-3",
            "-1.2.*",
        ],
    ],
)
def test_what_is_no_pattern_is_refused_with_its_text(pattern: str) -> None:
    with pytest.raises(ConfigError, match="is not an address pattern"):
        address_pattern(pattern)


@given(st.lists(st.integers(0, 255), min_size=4, max_size=4), st.integers(1, 3), st.data())
def test_a_range_matches_exactly_the_numbers_in_it(parts: list[int], at: int, data: st.DataObject) -> None:
    low = data.draw(st.integers(0, 255))
    high = data.draw(st.integers(low, 255))
    pattern = ".".join([*map(str, parts[:at]), f"{low}-{high}", *["*"] * (3 - at)])
    assert address_pattern(pattern)(".".join(map(str, parts))) == (low <= parts[at] <= high)
