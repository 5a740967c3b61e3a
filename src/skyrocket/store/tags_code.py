"""The eight bytes of a queue entry that stand for the tags: their hash, or the delivery time in the delay topic."""

from skyrocket.errors import ConfigError
from skyrocket.format.java_hash import java_hash
from skyrocket.format.properties import find_property
from skyrocket.model.delay_level import parse_delay_levels

_MAX_CACHED = 65_536
_MAX_CACHED_BYTES = 256


class TagsCoder:
    """Computes tags codes and remembers those of tags seen before."""

    def __init__(self, delay_levels: str) -> None:
        try:
            self._delays = parse_delay_levels(delay_levels)
        except ValueError as error:
            raise ConfigError(f"messageDelayLevel: {error}") from error
        self.known: dict[bytes, int] = {}

    def code(self, properties: bytes) -> int:
        """Hash of the complete TAGS text; 0 without tags."""
        tags = find_property(properties, b"TAGS")
        if tags is None:
            return 0
        code = self.known.get(tags)
        if code is None:
            code = java_hash(tags.decode("utf-8", "replace"))
            if len(self.known) < _MAX_CACHED and len(tags) <= _MAX_CACHED_BYTES:
                self.known[tags] = code
        return code

    def delivery_time(self, properties: bytes, store_timestamp: int) -> int:
        """What the delay topic stores instead: when the message is to be delivered."""
        text = find_property(properties, b"DELAY")
        try:
            level = min(int(text or b"0"), len(self._delays))
        except ValueError:
            level = 0
        if level <= 0:
            return self.code(properties)
        return store_timestamp + self._delays[level - 1]
