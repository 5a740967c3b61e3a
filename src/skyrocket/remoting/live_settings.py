"""Settings that an administrator may change while a name server or controller runs, and the file that keeps them."""

import logging
from collections.abc import Collection
from typing import Any, Generic, Protocol, TypeVar

from skyrocket.config.sections.setting import section_from
from skyrocket.config.sources import (
    keys_of,
    pairs_of,
    parse_properties,
    properties_text,
    secret_keys_of,
    shown_pairs_of,
    unknown_settings,
)
from skyrocket.errors import ConfigError
from skyrocket.protocol.errors import NoPermission, SystemFailure

_logger = logging.getLogger(__name__)


class ChangeableSection(Protocol):
    """What a section must have: RocketMQ's list of keys that are not changed, joined by `;`."""

    @property
    def config_black_list(self) -> str: ...


C = TypeVar("C", bound=ChangeableSection)


class SettingsFile(Protocol):
    """Where changed settings outlive the process; lines that are not ours stay in it."""

    def load(self) -> bytes | None: ...

    def save(self, content: bytes) -> None: ...


class LiveSettings(Generic[C]):
    """The settings in force; whoever uses one asks again each time."""

    def __init__(self, config: C, file: SettingsFile, accepted: Collection[str], fixed: Collection[str]) -> None:
        """`accepted` are RocketMQ's keys, of which an unknown one is not complained of; `fixed` ones never change."""
        self.config = config
        self.changes = 0
        self._file = file
        self._accepted = accepted
        self._fixed = frozenset(fixed)

    def text(self) -> str:
        """All settings as properties text."""
        return properties_text(shown_pairs_of(self.config))

    def update(self, text: str) -> None:
        """Change some; raises NoPermission or SystemFailure, and then none is changed."""
        section = type(self.config)
        try:
            pairs = parse_properties(text)
        except ConfigError as error:
            raise SystemFailure(f"string2Properties error: {error}") from error
        if (self._fixed | {key.strip() for key in self.config.config_black_list.split(";")}) & pairs.keys():
            raise NoPermission("Can not update config in black list.")
        for warning in unknown_settings(pairs, [section], self._accepted):
            _logger.warning("an update has a setting that takes no effect reason=%s", warning)
        changed = {key: value for key, value in pairs.items() if key in keys_of(section)}
        try:
            config = section_from(section, pairs_of(self.config) | changed)
        except ConfigError as error:
            raise SystemFailure(str(error)) from error
        others = parse_properties((self._file.load() or b"").decode("utf-8", "replace"))
        self._file.save(properties_text(others | _without_secrets(config)).encode())
        self.config = config
        self.changes += 1
        _logger.info("settings changed keys=%s", ",".join(sorted(changed)))


def _without_secrets(config: Any) -> dict[str, str]:
    """What may stand in the file: secrets stay where their owner wrote them."""
    secrets = secret_keys_of(type(config))
    return {key: value for key, value in pairs_of(config).items() if key not in secrets or not value}
