"""Options of Spark formats: typed, checked, and never ignored in silence."""

import pytest

from skyrocket.pipeline.options import OptionError, Options

KNOWN = ("namesrvAddr", "subscribe", "maxOffsetsPerTrigger", "failOnDataLoss", "delay", "size", "form", "start")


def options(**given: str) -> Options:
    return Options(given, KNOWN, "rocketmq")


def read_all(given: Options) -> None:
    given.whole("maxOffsetsPerTrigger", None, least=1)
    given.flag("failOnDataLoss", True)
    given.duration_ms("delay", 0)
    given.size_bytes("size", None)
    given.choice("form", ("map", "raw"), "map")
    given.json_object("start")


def test_names_are_compared_without_case() -> None:
    assert options(NAMESRVADDR="a:1").required("namesrvAddr", "") == "a:1"


@pytest.mark.parametrize(
    ("wrong", "right"), [("namesrv", "namesrvAddr"), ("maxoffsetspertriger", "maxOffsetsPerTrigger")]
)
def test_an_unknown_name_is_an_error_with_the_nearest_right_one(wrong: str, right: str) -> None:
    with pytest.raises(OptionError, match=f'no option "{wrong}"; did you mean "{right}"'):
        options(**{wrong: "x"})


def test_a_name_that_resembles_nothing_lists_what_there_is() -> None:
    with pytest.raises(OptionError, match="it has: namesrvAddr, subscribe"):
        options(qqqq="x")


def test_what_spark_adds_by_itself_is_let_pass() -> None:
    given = options(path="/x", checkpointLocation="/y", subscribe="Orders")
    assert given.required("subscribe", "") == "Orders"
    with pytest.raises(OptionError, match='no option "checkpointDirectory"'):
        options(path="/x", checkpointDirectory="/y")


def test_numbers_flags_times_and_sizes_are_read() -> None:
    given = options(maxOffsetsPerTrigger=" 12 ", failOnDataLoss="False", delay="1.5 m", size="64m")
    assert given.whole("maxOffsetsPerTrigger", None) == 12
    assert given.flag("failOnDataLoss", True) is False
    assert given.duration_ms("delay", 0) == 90_000
    assert given.size_bytes("size", None) == 64 << 20
    assert options(delay="250").duration_ms("delay", 0) == 250
    assert options().duration_ms("delay", 7) == 7


@pytest.mark.parametrize(
    ("name", "value", "what"),
    [
        ("maxOffsetsPerTrigger", "many", "not a whole number"),
        ("maxOffsetsPerTrigger", "0", "at least 1"),
        ("failOnDataLoss", "maybe", "true or false"),
        ("delay", "soon", "500ms"),
        ("size", "-1", "64m"),
        ("form", "yaml", "map, raw"),
        ("start", "{", "not JSON"),
        ("start", "[1]", "must be a JSON object"),
    ],
)
def test_a_wrong_value_is_told_with_its_option_and_what_would_be_right(name: str, value: str, what: str) -> None:
    with pytest.raises(OptionError, match=what) as caught:
        read_all(options(**{name: value}))
    assert f'"{name}"' in str(caught.value)


def test_exactly_one_of_several_must_be_given() -> None:
    assert options(subscribe="T").one_of("subscribe", "start") == "subscribe"
    with pytest.raises(OptionError, match="none was given"):
        options().one_of("subscribe", "start")
    with pytest.raises(OptionError, match="2 were given"):
        options(subscribe="T", start="{}").one_of("subscribe", "start")


def test_a_missing_option_is_told_with_an_example() -> None:
    with pytest.raises(OptionError, match=r'\.option\("namesrvAddr", "127.0.0.1:9876"\)'):
        options().required("namesrvAddr", "127.0.0.1:9876")
