"""Settings of the broker that an inspection may need."""

from pathlib import Path

import pytest

from skyrocket.errors import ConfigError
from skyrocket.inspector.settings import inspection_settings
from skyrocket.offline.index_files import IndexShape


@pytest.mark.requirement("A018")
def test_without_settings_index_files_have_their_default_shape() -> None:
    shape = inspection_settings(None, []).index_shape
    assert shape == IndexShape(5_000_000, 20_000_000)
    assert shape.file_size == 420_000_040


def test_a_broker_conf_is_read_and_single_settings_win(tmp_path: Path) -> None:
    conf = tmp_path / "broker.conf"
    conf.write_text(
        "# broker\nbrokerName = broker-a\nmaxHashSlotNum=700\nmaxIndexNum=900\n\nmappedFileSizeCommitLog=4096\n"
    )
    given = inspection_settings(conf, ["maxIndexNum=800"])
    assert given.index_shape == IndexShape(700, 800)
    assert given.file_sizes == {"commitlog": 4096}


@pytest.mark.parametrize("text", ["maxHashSlotNum", "=5", "maxHashSlotNum=many", "maxHashSlotNumm=5"])
def test_a_setting_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        inspection_settings(None, [text])


def test_a_conf_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        inspection_settings(tmp_path / "none.conf", [])
