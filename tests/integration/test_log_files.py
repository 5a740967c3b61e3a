"""Where servers log, as processes: an option says so, and no two of them share a file."""

from pathlib import Path

import pytest

from tests.integration.program import Program, Standalone


def test_each_process_of_a_set_has_a_log_file_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "logs" / "sky.log"
    # What the environment says reaches every process; a file of its own counts more.
    monkeypatch.setenv("SKYROCKET_LOG_FILE", str(file))
    arguments = ("--replicas", "2", "--log", "level=INFO", "--log", "format=json")
    with Standalone(tmp_path, arguments=arguments) as started:
        assert started.stop() == 0
    files = sorted(path.name for path in file.parent.iterdir())
    assert files == ["sky-broker-a-1.log", "sky-broker-a.log", "sky.log"]
    for path in file.parent.iterdir():
        assert path.read_text().startswith('{"time"'), path.name


def test_a_second_server_with_the_same_log_file_is_refused(tmp_path: Path) -> None:
    arguments = ("namesrv", "--listen-port", "0", "--log", f"file={tmp_path / 'names.log'}")
    with Program(*arguments, home=tmp_path) as first:
        first.await_line("boot success")
        with Program(*arguments, home=tmp_path) as second:
            second.await_line(r"names\.log belongs to another process.*give each its own")
            assert second.process.wait(60) == 2
