"""What servers log: formats, files, and what repeats."""

import json
import logging
from pathlib import Path

import pytest

from skyrocket.errors import ConfigError
from skyrocket.observability.logs import Folding, JournalLines, JsonLines, LogSettings, TextLines
from skyrocket.testing.clock import FakeClock


def record(text: str, *values: object, level: int = logging.WARNING) -> logging.LogRecord:
    return logging.LogRecord("skyrocket.x", level, "x.py", 1, text, values, None)


def test_the_same_line_is_shown_once_a_minute_and_then_says_how_many_were_left_out() -> None:
    clock = FakeClock()
    folding = Folding(clock.monotonic)
    assert [folding.filter(record("disk full")) for _ in range(5)] == [True, False, False, False, False]
    assert folding.filter(record("other"))
    clock.advance(seconds=60)
    again = record("disk full")
    assert folding.filter(again)
    assert TextLines("%(message)s").format(again) == "disk full (4 more of these were left out)"
    assert json.loads(JsonLines().format(again))["left_out"] == 4


def test_a_server_that_is_waited_for_is_one_line_a_minute_however_often_it_was_tried() -> None:
    clock = FakeClock()
    folding = Folding(clock.monotonic)
    reasons = [
        "127.0.0.1:10911: could not connect: nothing listens there",
        *(f"127.0.0.1:10911: could not connect {n} times, next attempt in {n * 100} ms: gone" for n in range(2, 9)),
    ]
    shown = [reason for reason in reasons if folding.filter(record("not taken over reason=%s", reason))]
    assert len(shown) == 2, "one for each cause"
    other = "127.0.0.1:10921: could not connect 2 times, next attempt in 100 ms: gone"
    assert folding.filter(record("not taken over reason=%s", other)), "another server"


def test_lines_of_one_kind_that_differ_are_twenty_a_minute() -> None:
    folding = Folding(FakeClock().monotonic)
    assert sum(folding.filter(record("peer %d left", number)) for number in range(500)) == 20


def test_what_is_known_of_repetitions_is_bounded() -> None:
    folding = Folding(FakeClock().monotonic)
    for number in range(10_000):
        folding.filter(record(f"line {number}"))
    assert len(folding._known) <= 2000


def test_the_journal_is_told_the_level_of_every_line() -> None:
    shown = JournalLines().format(record("a\nb", level=logging.ERROR))
    assert shown == "<3>skyrocket.x a\n<3>b"
    assert JournalLines().format(record("a", level=logging.INFO)).startswith("<6>")


def test_files_are_rotated_and_the_oldest_go(tmp_path: Path) -> None:
    given = {
        "SKYROCKET_LOG_FORMAT": "JSON",
        "SKYROCKET_LOG_FILE": str(tmp_path / "logs" / "broker.log"),
        "SKYROCKET_LOG_FILE_BYTES": "2000",
        "SKYROCKET_LOG_FILE_COUNT": "3",
    }
    handler = LogSettings.of(given).handler()
    for number in range(100):
        handler.handle(record(f"line {number}"))
    handler.close()
    files = sorted((tmp_path / "logs").iterdir())
    assert [path.name for path in files] == ["broker.log", "broker.log.1", "broker.log.2"]
    assert all(path.stat().st_size <= 2000 for path in files)
    assert json.loads(files[0].read_text().splitlines()[-1])["message"] == "line 99"


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("SKYROCKET_LOG_FORMAT", "xml", "choose one of text, json, journal"),
        ("SKYROCKET_LOG_LEVEL", "loud", "choose one of DEBUG"),
        ("SKYROCKET_LOG_FILE_BYTES", "1k", "a number"),
        ("SKYROCKET_LOG_FILE_COUNT", "0", "from 1 on"),
    ],
)
def test_a_wrong_setting_is_refused_with_the_reason(name: str, value: str, why: str) -> None:
    with pytest.raises(ConfigError, match=f"{name}={value}.*{why}"):
        LogSettings.of({name: value})


def test_a_file_that_cannot_be_written_is_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="cannot be written"):
        LogSettings(file=tmp_path / "file" / "log").handler()


def test_options_count_more_than_variables(tmp_path: Path) -> None:
    given = {"SKYROCKET_LOG_FORMAT": "json", "SKYROCKET_LOG_LEVEL": "ERROR"}
    wanted = LogSettings.of(given, ["level=INFO", f"file={tmp_path / 'a.log'}", "fileCount=2"])
    assert wanted == LogSettings("json", "INFO", tmp_path / "a.log", file_count=2)


@pytest.mark.parametrize("wrong", ["level=loud", "fileCount=0", "files=a", "json"])
def test_a_wrong_option_is_refused_as_it_was_written(wrong: str) -> None:
    with pytest.raises(ConfigError, match=f"^--log {wrong}: "):
        LogSettings.of({}, [wrong])


def test_a_file_has_one_writer_also_after_it_was_rotated(tmp_path: Path) -> None:
    settings = LogSettings(file=tmp_path / "a.log", file_bytes=200, file_count=2)
    first = settings.handler()
    for number in range(20):
        first.handle(record(f"line {number}"))
    assert (tmp_path / "a.log.1").exists()
    with pytest.raises(ConfigError, match=r"a\.log belongs to another process"):
        settings.handler()
    first.close()
    settings.handler().close()
