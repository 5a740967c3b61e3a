"""`skyrocket inspect --compare`: two logs beside each other, as a user calls it."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from skyrocket.cli import app
from tests.golden_store import GoldenStore

CLEAN = GoldenStore("5.4.0", "clean")
RECORD, CHANGED = 818229, 26  # a record in the middle, and a byte of its queue offset


@pytest.fixture
def stores(tmp_path: Path) -> tuple[Path, Path]:
    return CLEAN.extract(tmp_path / "a"), CLEAN.extract(tmp_path / "b")


def compare(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["inspect", "--compare", *map(str, arguments)])


def as_json(*arguments: object) -> dict[str, Any]:
    line: dict[str, Any] = json.loads(compare(*arguments, "--json").stdout.splitlines()[-1])
    return line


def log_files(store: Path) -> list[Path]:
    return sorted((store / "commitlog").iterdir())


def flip(store: Path, physical_offset: int) -> None:
    size = log_files(store)[0].stat().st_size
    file = log_files(store)[physical_offset // size]
    data = bytearray(file.read_bytes())
    data[physical_offset % size] ^= 0x10
    file.write_bytes(data)


def cut_at(store: Path, physical_offset: int) -> None:
    """As a slave that has not received what comes from here on."""
    size = log_files(store)[0].stat().st_size
    for file in log_files(store):
        start = int(file.name)
        if start >= physical_offset:
            file.unlink()
        elif start + size > physical_offset:
            kept = file.read_bytes()[: physical_offset - start]
            file.write_bytes(kept.ljust(size, b"\0"))


def test_two_copies_of_a_store_are_identical(stores: tuple[Path, Path]) -> None:
    result = compare(*stores, "--strict")
    assert result.exit_code == 0, result.output
    assert "identical: " in result.stdout
    assert "ahead" not in result.stdout


def test_one_other_byte_is_found_with_its_record_and_both_of_its_values(stores: tuple[Path, Path]) -> None:
    flip(stores[1], RECORD + CHANGED)
    result = compare(*stores)
    assert result.exit_code == 1
    assert f"DIFFERENT: at physical offset {RECORD + CHANGED}, in the record at {RECORD}: byte 0x" in result.stdout
    assert "TopicBusy queue 1" in " ".join(result.stdout.split())
    line = as_json(*stores)
    assert (line["ok"], line["differsAt"], line["record"]) == (False, RECORD + CHANGED, RECORD)


def test_a_slave_that_is_behind_is_identical_as_far_as_it_goes(stores: tuple[Path, Path]) -> None:
    cut_at(stores[1], RECORD)
    result = compare(*stores)
    assert result.exit_code == 0, result.output
    assert "; the first is " in result.stdout
    assert " ahead" in result.stdout
    assert as_json(*stores)["bytes"] == RECORD
    assert compare(*stores, "--strict").exit_code == 1


def test_files_that_one_has_deleted_by_age_are_left_out(stores: tuple[Path, Path]) -> None:
    oldest = log_files(stores[0])[0]
    size = oldest.stat().st_size
    oldest.unlink()
    result = compare(*stores)
    assert result.exit_code == 0, result.output
    assert "the second still has 256 KiB that are older" in result.stdout
    assert f"compared, {size} to " in result.stdout


def test_a_file_that_is_missing_in_the_middle_is_a_difference(stores: tuple[Path, Path]) -> None:
    gone = log_files(stores[1])[2]
    gone.unlink()
    line = as_json(*stores)
    assert (line["ok"], line["differsAt"]) == (False, int(gone.name))
    assert "the second log has no file with this byte" in line["what"]


def test_logs_without_a_common_byte_cannot_be_called_identical(stores: tuple[Path, Path]) -> None:
    for file in log_files(stores[0])[:-1]:
        file.unlink()
    for file in log_files(stores[1])[1:]:
        file.unlink()
    result = compare(*stores)
    assert result.exit_code == 1
    assert "no byte in common" in result.stdout


def test_a_directory_that_is_not_a_store_is_named(stores: tuple[Path, Path], tmp_path: Path) -> None:
    result = compare(stores[0], tmp_path / "nothing")
    assert result.exit_code == 2
    assert "nothing does not exist" in " ".join(result.output.split())
