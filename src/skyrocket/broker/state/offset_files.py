"""Consumer offsets on disk: `consumerOffset.json`, and `lmqConsumerOffset.json` where a broker had enableLmq on.

RocketMQ with enableLmq keeps the offsets of all groups in the second file and neither reads nor writes the first. When
both are there, the newer one leads for each queue, and both are written: whichever broker comes next finds the offsets.
"""

from dataclasses import replace
from functools import partial

from skyrocket.fastjson import Dialect
from skyrocket.format.config_files import CONSUMER_OFFSETS, ConsumerOffsets
from skyrocket.store.config_file import ConfigDisk, ConfigFile


class OffsetFiles(ConfigFile[ConsumerOffsets]):
    """The file, and the one of light queues beside it when that exists."""

    def __init__(self, disk: ConfigDisk, path: str, light_path: str) -> None:
        encode = partial(CONSUMER_OFFSETS.encode, dialect=Dialect.V5_4)
        super().__init__(disk, path, CONSUMER_OFFSETS.decode, encode)
        self._light = ConfigFile(disk, light_path, CONSUMER_OFFSETS.decode, encode)
        self._has_light = False

    def load(self) -> ConsumerOffsets | None:
        plain: ConsumerOffsets | None = super().load()
        light: ConsumerOffsets | None = self._light.load()
        self._has_light = light is not None
        if plain is None or light is None:
            return plain or light
        older, newer = sorted((plain, light), key=lambda content: content.data_version.timestamp)
        offsets = {
            key: older.offsets.get(key, {}) | newer.offsets.get(key, {}) for key in older.offsets | newer.offsets
        }
        return replace(newer, offsets=offsets, light_offsets=light.light_offsets)

    def save(self, content: ConsumerOffsets) -> None:
        if self._has_light:
            self._light.save(content)
        super().save(replace(content, light_offsets=None) if self._has_light else content)
