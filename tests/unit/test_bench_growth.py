"""The benchmark of growth: medians of its rounds, and when a line is worse than linear."""

import pytest
from bench.growth.points import Point, lines_of, table
from bench.load.scenario import SEND, Scenario


def point(count: int, cpu_us: float = 20.0, memory_mb: float = 50.0, rate: float = 9.0) -> Point:
    return Point("topics", "sends", count, rate, cpu_us, memory_mb, 1.0)


def test_the_median_of_the_rounds_counts_and_sizes_are_in_order() -> None:
    points = [point(1000, 25), point(10, 20), point(1000, 90), point(10, 21), point(1000, 26), point(10, 3)]
    (line,) = lines_of(points)
    assert [(each.count, each.cpu_us) for each in line.points] == [(10, 20), (1000, 26)]


@pytest.mark.parametrize(
    ("largest", "power", "is_worse"),
    [
        (point(100_000), 0.0, False),
        (point(100_000, memory_mb=50_000), 1.0, False),
        (point(100_000, memory_mb=60_000), 1.026, True),
        (point(100_000, cpu_us=30_000), 1.059, True),
    ],
)
def test_a_line_is_worse_than_linear_where_its_steepest_part_is(largest: Point, power: float, is_worse: bool) -> None:
    (line,) = lines_of([point(10), point(100), largest])
    assert max(line.cpu_exponent, line.memory_exponent) == pytest.approx(power, abs=0.001)
    assert line.is_worse_than_linear is is_worse
    assert ("WORSE THAN LINEAR" in table([line])) is is_worse
    assert f"{100_000:,} topics: sends" in table([line])


def test_a_step_within_a_tenfold_is_no_slope_but_what_grows_all_along_is() -> None:
    (limit,) = lines_of([point(10, 1.3), point(100, 1.3), point(300, 1.3), point(1000, 4.6)])
    assert limit.cpu_exponent == pytest.approx(0.549, abs=0.001)
    assert not limit.is_worse_than_linear
    (slope,) = lines_of([point(100, 1.3), point(300, 4.6), point(1000, 18.0)])
    assert slope.is_worse_than_linear


def test_a_load_goes_to_as_many_topics_as_it_says() -> None:
    one, three = (Scenario(SEND, ("127.0.0.1", 1), "Growth", topics=topics) for topics in (1, 3))
    assert one.topic_names == ["Growth"]
    assert three.topic_names == ["Growth-00000", "Growth-00001", "Growth-00002"]
