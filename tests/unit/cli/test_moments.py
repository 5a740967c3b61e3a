"""Times and places as people type them."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.cli.program.moments import EARLIEST, LATEST, Start, StartKind, ago_or_at, moment_of, seconds_of, start_of
from skyrocket.errors import ConfigError

NOW_MS = 1_700_000_000_000


@pytest.mark.parametrize(
    ("text", "seconds"), [("1.5", 1.5), ("30s", 30), ("10m", 600), ("2h", 7200), ("1d", 86400), ("250ms", 0.25)]
)
def test_a_length_of_time_has_a_unit_or_is_in_seconds(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-1", "10x", "inf", "nan"])
def test_what_is_no_length_of_time_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ConfigError, match="is not a length of time: write seconds, or 30s, 10m"):
        seconds_of(text)


@pytest.mark.parametrize("text", ["999999999999d", "1e300"])
def test_a_length_of_time_that_no_clock_knows_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is longer than a hundred years"):
        seconds_of(text)


def test_what_was_before_1970_is_its_beginning() -> None:
    assert ago_or_at("36000d", NOW_MS) == datetime.fromtimestamp(0, UTC)
    assert start_of("36000d", NOW_MS) == Start(StartKind.TIME, 0)


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("earliest", EARLIEST),
        ("latest", LATEST),
        ("1200", Start(StartKind.OFFSET, 1200)),
        ("0", Start(StartKind.OFFSET, 0)),
        ("-10", Start(StartKind.LAST, 10)),
        ("15m", Start(StartKind.TIME, NOW_MS - 900_000)),
        ("2023-11-14T22:13:20+00:00", Start(StartKind.TIME, NOW_MS)),
    ],
)
def test_a_place_to_begin_at(text: str, start: Start) -> None:
    assert start_of(text, NOW_MS) == start


def test_a_time_without_a_zone_is_local() -> None:
    assert moment_of("2026-01-31T12:00").timestamp() == datetime(2026, 1, 31, 12).timestamp()  # noqa: DTZ001
    assert moment_of("2026-01-31T12:00Z") == datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize("text", ["", "begin", "12:00", "--5", "1e3"])
def test_what_is_no_place_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ConfigError, match=r"is not a place to begin: write earliest, latest, an offset \(1200\)"):
        start_of(text, NOW_MS)


starts = st.builds(Start, st.sampled_from(StartKind), st.integers(0, 2000))


@given(starts, st.integers(0, 1000), st.integers(0, 1000), st.integers(0, 3000))
def test_every_place_lies_within_the_queue(start: Start, first: int, length: int, at_time: int) -> None:
    end = first + length
    offset = start.in_queue(first, end, at_time)
    assert first <= offset <= end
    if start.kind is StartKind.LAST:
        assert end - offset == min(start.value, length)
    if start.kind is StartKind.OFFSET and first <= start.value <= end:
        assert offset == start.value
