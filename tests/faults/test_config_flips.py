"""A flipped bit in a config file of the broker: the file or its backup is read, or it is refused by name."""

from pathlib import Path

import pytest

from skyrocket.errors import CorruptFile
from skyrocket.fastjson import Dialect
from skyrocket.format.config_files import TOPICS, Topics
from skyrocket.model.topic_config import TopicConfig
from skyrocket.store.config_file import ConfigFile
from skyrocket.store.disk import Disk
from tests.faults.harness import check_refusal


def config_file(path: Path) -> ConfigFile[Topics]:
    return ConfigFile(Disk(), str(path), TOPICS.decode, lambda content: TOPICS.encode(content, Dialect.V5_4))


@pytest.mark.parametrize("with_backup", [True, False])
def test_a_flipped_bit_in_a_config_file_is_read_around_or_named(directory: Path, with_backup: bool) -> None:
    path = directory / "topics.json"
    content = Topics(topics={name: TopicConfig(name) for name in ("orders", "payments")})
    file = config_file(path)
    file.load()
    file.save(content)
    if with_backup:
        file.save(content)
    good = path.read_bytes()
    refused = 0
    for position in range(len(good)):
        for bit in (0, 3, 7):
            flipped = bytearray(good)
            flipped[position] ^= 1 << bit
            path.write_bytes(flipped)
            try:
                loaded = config_file(path).load()
            except CorruptFile as refusal:
                assert not with_backup
                check_refusal(refusal, directory)
                refused += 1
            else:
                assert loaded is not None, "bytes were taken for nothing: the next save would destroy them"
    assert refused or with_backup
