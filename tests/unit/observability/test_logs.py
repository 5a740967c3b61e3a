"""What servers log: formats, files, and what repeats."""

import contextlib
import json
import logging
import os
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


def test_a_flood_of_lines_that_all_differ_is_twenty_a_minute_and_the_next_one_says_how_many() -> None:
    clock = FakeClock()
    folding = Folding(clock.monotonic)
    assert sum(folding.filter(record("refused peer=%d", number)) for number in range(10_000)) == 20
    clock.advance(seconds=60)
    after = record("refused peer=%d", -1)
    assert folding.filter(after)
    assert vars(after)["left_out"] == 9_980


def test_a_single_file_begins_anew_when_it_is_full(tmp_path: Path) -> None:
    handler = LogSettings(file=tmp_path / "a.log", file_bytes=200, file_count=1).handler()
    for number in range(100):
        handler.handle(record("line %d", number))
    handler.close()
    assert [path.name for path in tmp_path.iterdir()] == ["a.log"]
    assert (tmp_path / "a.log").stat().st_size <= 200
    assert (tmp_path / "a.log").read_text().endswith("line 19\n"), "the last of its kind in this minute"


def test_a_file_that_logrotate_renames_is_left_for_a_new_one_of_its_name(tmp_path: Path) -> None:
    handler = LogSettings(file=tmp_path / "a.log").handler()
    handler.handle(record("before"))
    (tmp_path / "a.log").rename(tmp_path / "a.log-20260101")
    handler.handle(record("after"))
    (tmp_path / "a.log").unlink()
    (tmp_path / "a.log").touch()  # logrotate's `create`
    handler.handle(record("later"))
    handler.close()
    assert (tmp_path / "a.log-20260101").read_text().endswith("before\n")
    assert (tmp_path / "a.log").read_text().endswith("later\n")


def test_a_file_that_logrotate_copies_and_cuts_goes_on_from_its_start(tmp_path: Path) -> None:
    handler = LogSettings(file=tmp_path / "a.log").handler()
    handler.handle(record("before"))
    os.truncate(tmp_path / "a.log", 0)
    handler.handle(record("after"))
    handler.close()
    text = (tmp_path / "a.log").read_bytes()
    assert text.endswith(b"after\n")
    assert b"\0" not in text
    assert b"before" not in text


def test_lines_that_a_full_disk_does_not_take_are_on_standard_error_without_a_traceback(
    capfd: pytest.CaptureFixture[str],
) -> None:
    handler = LogSettings(file=Path("/dev/full")).handler()
    handler.handle(record("broker lost"))
    handler.handle(record("broker found"))
    with contextlib.suppress(OSError):
        handler.close()
    told = capfd.readouterr().err.splitlines()
    assert [line.partition(": ")[0] for line in told] == [
        "the log file /dev/full takes no lines (No space left on device)"
    ] * 2
    assert told[0].endswith("skyrocket.x broker lost")


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_name_that_is_no_text_is_written_all_the_same(form: str, tmp_path: Path) -> None:
    handler = LogSettings(form, file=tmp_path / "a.log").handler()
    handler.handle(record("path=%s", os.fsdecode(b"/store/\xff")))
    handler.close()
    (line,) = (tmp_path / "a.log").read_text().splitlines()
    if form == "json":
        assert json.loads(line)["message"] == "path=/store/\udcff"
    else:
        assert line.endswith(r"path=/store/\udcff")
