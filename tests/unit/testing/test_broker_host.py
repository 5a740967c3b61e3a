"""What is left of a broker that was killed: a copy of its files while threads of its store may still work."""

import shutil
from pathlib import Path

import pytest

from skyrocket.testing.broker_host import copy_store


def test_a_file_that_is_renamed_while_the_store_is_copied_does_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "store" / "config"
    config.mkdir(parents=True)
    (config / "topics.json").write_text("old")
    (config / "topics.json.tmp").write_text("new")
    copy = shutil.copy2

    def copy_late(source: str, target: str) -> object:
        if source.endswith(".tmp"):
            (config / "topics.json.tmp").rename(config / "topics.json")
        return copy(source, target)

    monkeypatch.setattr(shutil, "copy2", copy_late)
    copy_store(tmp_path / "store", tmp_path / "remains")
    assert [path.name for path in (tmp_path / "remains" / "config").iterdir()] == ["topics.json"]
