"""Command lines of mqadmin: every name has its function, and options are read as RocketMQ reads them."""

import contextlib
import inspect
import re
from itertools import groupby

import pytest
from hypothesis import given as with_values
from hypothesis import strategies as st

from skyrocket.cli.mqadmin.commands import COMMANDS
from skyrocket.cli.mqadmin.handlers import handler_of
from skyrocket.cli.mqadmin.options import command_named, options_of, parse, usage
from skyrocket.errors import ConfigError
from tests import ROOT, commands_page


def test_there_are_89_names_and_each_has_its_function() -> None:
    assert len(COMMANDS) == 89
    for name in COMMANDS:
        handler = handler_of(name)
        assert inspect.iscoroutinefunction(handler), name
        assert usage(name).startswith(f"usage: mqadmin {name} ")


def _options_of_rocketmq() -> dict[str, list[tuple[str, str, str]]]:
    """By command: short and long name and mark of each option."""
    table = (ROOT / "tests" / "unit" / "cli" / "mqadmin_options.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\w+) \| (.*) \|$", table, re.MULTILINE)[1:]
    return {name: re.findall(r"`(?:-(\w+) )?--([\w-]+)`([!¦°]?)", options) for name, options in rows}


def test_every_option_of_rocketmqs_is_taken_by_both_of_its_names() -> None:
    table = _options_of_rocketmq()
    assert table.keys() == COMMANDS.keys()
    for command, options in table.items():
        required = [f"--{long}=1" for _, long, mark in options if mark == "!"]
        groups = [[each[1] for each in run] for marked, run in groupby(options, lambda each: each[2] == "¦") if marked]
        for short, long, mark in options:
            for word in filter(None, (short and f"-{short}", f"--{long}")):
                one_of = [f"--{group[0]}=1" for group in groups if long not in group]
                others = [each for each in (*required, *one_of) if each != f"--{long}=1"]
                given = parse(command, [*others, word, *([] if mark == "°" else ["1"])])
                assert given.values, (command, word)
            declared = {option.long: option for option in options_of(command)}[long]
            assert declared.is_flag == (mark == "°"), (command, long)
            if mark == "!" and short != "n":  # the environment or a context may name the cluster
                assert declared.mark == "!", (command, long)


def test_the_page_of_names_has_every_one() -> None:
    page = (ROOT / "docs" / "reference" / "mqadmin.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    assert sorted(listed) == sorted(COMMANDS)


def test_the_page_of_commands_is_not_stale() -> None:
    page = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    assert page == commands_page.page(), "run: python -m tests.commands_page > docs/reference/commands.md"


def test_no_command_has_an_option_twice() -> None:
    for name in COMMANDS:
        shorts = [option.short for option in options_of(name) if option.short]
        longs = [option.long for option in options_of(name)]
        assert len(shorts) == len(set(shorts)), name
        assert len(longs) == len(set(longs)), name


@pytest.mark.parametrize(
    "words",
    [
        ("-t", "Orders", "-n", "a:1"),
        ("-tOrders", "-na:1"),
        ("-t=Orders", "-n=a:1"),
        ("--topic", "Orders", "--namesrvAddr", "a:1"),
        ("--topic=Orders", "--namesrvAddr=a:1"),
        ("-topic", "Orders", "-namesrvAddr", "a:1"),
        ("--top", "Orders", "--namesrv", "a:1"),
    ],
)
def test_options_are_written_in_many_ways(words: tuple[str, ...]) -> None:
    given = parse("topicStatus", words)
    assert (given["topic"], given["namesrvAddr"]) == ("Orders", "a:1")


def test_a_negative_number_is_a_value() -> None:
    given = parse("resetOffsetByTime", ["-g", "G", "-t", "T", "-s", "-3600000"])
    assert given["timestamp"] == "-3600000"


def test_of_an_option_that_is_repeated_the_first_value_counts() -> None:
    given = parse("topicStatus", ["-t", "Orders", "--topic", "Returns", "-n", "a:1", "-tOthers"])
    assert given["topic"] == "Orders"


@pytest.mark.parametrize("words", [("-mc", "Default"), ("-mcDefault",), ("-m", "-c", "Default"), ("-mc=Default",)])
def test_flags_stand_together_and_the_last_may_take_a_value(words: tuple[str, ...]) -> None:
    given = parse("clusterList", words)
    assert (given["moreStats"], given["clusterName"]) == ("true", "Default")


def test_a_value_may_begin_with_a_hyphen_unless_it_could_be_an_option() -> None:
    topic = ["-b", "a:1", "-t", "Orders"]
    assert parse("updateTopic", [*topic, "-a", "-message.type"])["attributes"] == "-message.type"
    assert parse("updateTopic", [*topic, "-a=-reserve.time"])["attributes"] == "-reserve.time"
    assert parse("sendMessage", ["-t", "Orders", "-p", "-"])["body"] == "-"
    for other in ("-reserve.time", "--perm", "-perm=6", "--"):
        with pytest.raises(ConfigError, match="Missing argument for option: a"):
            parse("updateTopic", [*topic, "-a", other])


def test_a_long_name_may_be_cut_short_while_it_is_the_only_one() -> None:
    assert parse("topicStatus", ["-top", "Orders"])["topic"] == "Orders"
    assert parse("topicStatus", ["-topicOrders"])["topic"] == "Orders"
    assert parse("updateSubGroup", ["-g", "G", "--attr", "+a=1"])["attributes"] == "+a=1"
    assert parse("consumerProgress", ["--clus", "C", "--out", "json"])["output"] == "json"
    with pytest.raises(ConfigError, match="Ambiguous option: --consume "):
        parse("updateSubGroup", ["-g", "G", "--consume", "true"])


@pytest.mark.parametrize(
    ("words", "ignored"),
    [
        (("-t", "Orders", "extra"), ("extra",)),
        (("extra", "-t", "Orders"), ("extra",)),
        (("-t", "Orders", "extra", "-n", "a:1"), ("extra",)),
        (("-t", "Orders", "-"), ("-",)),
        (("-t", "Orders", "--", "-n", "a:1"), ("-n", "a:1")),
        (("-t", "Orders", "--", "--"), ("--",)),
        (("-t", "Orders", "", "x=y"), ("", "x=y")),
    ],
)
def test_words_that_belong_to_no_option_are_passed_over_as_commons_cli_does(
    words: tuple[str, ...], ignored: tuple[str, ...]
) -> None:
    given = parse("topicStatus", words)
    assert (given["topic"], given.ignored) == ("Orders", ignored)


@pytest.mark.parametrize(
    ("command", "words", "reason"),
    [
        ("topicStatus", [], "Missing required option: t"),
        ("topicStatus", ["-t"], "Missing argument for option: t"),
        ("topicStatus", ["-t", "-n"], "Missing argument for option: t"),
        ("topicStatus", ["-t", "x", "-z", "y"], "Unrecognized option: -z"),
        ("topicStatus", ["x"], "Missing required option: t"),
        ("topicStatus", ["-t", "x", "y", "-z"], "Unrecognized option: -z"),
        ("topicStatus", ["--", "-t", "x"], "Missing required option: t"),
        ("sendMessage", ["-t", "x", "-p", "\udcff"], "is not UTF-8"),
        ("updateTopic", ["-t", "x"], r"Missing required option: \[-b, -c\]"),
        ("updateTopic", ["-t", "x", "-b", "y", "-c", "z"], "from this group has already been selected: 'b'"),
        ("updateUser", ["-u", "x", "-b", "y"], r"Missing required option: \[-p, -t, -s\]"),
        ("updateUser", ["-u", "x", "-b", "y", "-p", "z", "-s", "enable"], "has already been selected: 'p'"),
        ("topicList", ["--clusterModel=true"], "takes no value"),
        ("createAcl", ["-b", "x"], "Missing required options: s, r, a, d"),
    ],
)
def test_wrong_command_lines_are_refused_in_rocketmqs_words(command: str, words: list[str], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        parse(command, words)


@pytest.mark.parametrize(
    ("command", "option", "name", "most"),
    [("updateSubGroup", "-r", "retryMaxTimes", 2**31 - 1), ("queryMsgByOffset", "-o", "offset", 2**63 - 1)],
)
def test_a_number_that_java_has_no_room_for_is_refused(command: str, option: str, name: str, most: int) -> None:
    required = {"updateSubGroup": ["-g", "G"], "queryMsgByOffset": ["-t", "T", "-b", "broker-a", "-i", "0"]}[command]
    assert parse(command, [*required, option, str(most)]).number(name) == most
    with pytest.raises(ConfigError, match=f"--{name} {most + 1} is beyond {most}"):
        parse(command, [*required, option, str(most + 1)]).number(name)


def test_names_are_found_in_any_letter_case() -> None:
    assert command_named("TOPICLIST") == "topicList"
    with pytest.raises(ConfigError, match=r"The sub command topicLists not exist\. Did you mean topicList\?"):
        command_named("topicLists")


@with_values(st.lists(st.text(max_size=12), max_size=6))
def test_no_command_line_makes_the_reader_fall_over(words: list[str]) -> None:
    with contextlib.suppress(ConfigError):
        parse("updateTopic", words)
