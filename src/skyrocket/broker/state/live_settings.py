"""The settings in force, who follows a change of them, and the file that keeps changes for the next start.

    text of a request ─▶ changed_by (checked, nothing done yet) ─▶ save ─▶ apply ─▶ followers of the changed keys

A key without a follower is kept and shown, and counts from the next start on.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from skyrocket.clock import Clock
from skyrocket.config.rocketmq_keys import BROKER_KEYS
from skyrocket.config.sections import BrokerConfig, StoreConfig
from skyrocket.config.sections.setting import section_from
from skyrocket.config.sources import (
    SECRET_SHOWN,
    keys_of,
    pairs_of,
    parse_properties,
    properties_text,
    shown_pairs_of,
    unknown_settings,
)
from skyrocket.config.unkept_promises import ignored_promises, refuse_unkept_promises
from skyrocket.errors import ConfigError
from skyrocket.model.data_version import DataVersion
from skyrocket.protocol.errors import NoPermission, SystemFailure

_logger = logging.getLogger(__name__)

_NEVER_CHANGED: Final = frozenset({"configBlackList", "brokerConfigPath", "rocketmqHome"})
# What the broker has built on since its start: another value would come true at the next start, without a word, in
# another store, with other accounts or under another name.
_FIXED: Final = {
    "storePathRootDir": "the store is open there",
    "aclConfigPath": "the accounts were read from there",
    "accessValidators": "the checks were loaded at the start",
    "brokerPlugins": "the features were loaded at the start",
    "brokerName": "offsets, routes and receipts carry it",
    "brokerClusterName": "topics of the system carry it",
    "brokerId": "it says who is master",
    "brokerRole": "a master cannot become a slave while it serves, nor a slave a master",
}
_SECTIONS: Final = [BrokerConfig, StoreConfig]
# The same on every broker, since we have no such settings; mqadmin 4.9 exportConfigs fails without these keys.
_FACTS: Final = {
    "filterServerNums": "0",
    "useTLS": "false",
}
_MARK: Final = "# Changed while the broker ran; these lines count more than those above."


class SettingsFile(Protocol):
    """Where changed settings outlive the process."""

    def load(self) -> bytes | None: ...

    def save(self, content: bytes) -> None: ...


@dataclass(frozen=True, slots=True)
class SettingsChange:
    """What a request changes, checked as a whole."""

    broker: BrokerConfig
    store: StoreConfig
    values: Mapping[str, str]  # by key; only those that we have


class LiveSettings:
    """Whoever can follow a change says so with `follow`; all others keep what they were built with."""

    def __init__(self, broker: BrokerConfig, store: StoreConfig, file: SettingsFile, clock: Clock) -> None:
        self.broker = broker
        self.store = store
        self.data_version = DataVersion(timestamp=clock.now_ms())
        self._file = file
        self._clock = clock
        self._followers: list[tuple[frozenset[str], Callable[[], None]]] = []

    def follow(self, apply: Callable[[], None], *keys: str) -> None:
        """Have a function called after one of these keys (RocketMQ's names) has another value."""
        unknown = frozenset(keys) - self.keys()
        assert not unknown, unknown
        self._followers.append((frozenset(keys), apply))

    @staticmethod
    def keys() -> set[str]:
        """All keys that there are."""
        return keys_of(BrokerConfig) | keys_of(StoreConfig)

    @property
    def followed_keys(self) -> frozenset[str]:
        """Keys whose change takes effect at once."""
        return frozenset().union(*(keys for keys, _ in self._followers))

    def pairs(self) -> dict[str, str]:
        """Text values by key."""
        return pairs_of(self.store) | pairs_of(self.broker)

    def text(self) -> str:
        """All settings as properties text, secrets covered."""
        return properties_text(_FACTS | shown_pairs_of(self.store) | shown_pairs_of(self.broker))

    def changed_by(self, text: str) -> SettingsChange:
        """What properties text asks for; raises NoPermission or SystemFailure.

        # RocketMQ passes over a value of the wrong type and reports success; here the sender hears what is wrong.
        """
        try:
            pairs = parse_properties(text)
        except ConfigError as error:
            raise SystemFailure(f"string2Properties error: {error}") from error
        try:
            refuse_unkept_promises(pairs)
        except ConfigError as error:
            raise SystemFailure(str(error)) from error
        if self._forbidden() & pairs.keys():
            raise NoPermission("Can not update config in black list.")
        for warning in (*unknown_settings(pairs, _SECTIONS, BROKER_KEYS), *ignored_promises(pairs)):
            _logger.warning("an update has a setting that takes no effect reason=%s", warning)
        self._check_fixed(pairs)
        # A covered secret that comes back, because somebody sends what they were shown, changes nothing.
        values = {key: value for key, value in pairs.items() if key in self.keys() and value != SECRET_SHOWN}
        everything = self.pairs() | values
        try:
            broker = section_from(BrokerConfig, everything, allow_unknown=True)
            store = section_from(StoreConfig, everything, allow_unknown=True)
        except ConfigError as error:
            raise SystemFailure(str(error)) from error
        return SettingsChange(broker, store, values)

    def _check_fixed(self, pairs: Mapping[str, str]) -> None:
        present = self.pairs()
        for key, reason in _FIXED.items():
            if key in pairs and pairs[key].strip() != present[key]:
                raise NoPermission(
                    f"{key} cannot be changed while the broker runs: {reason}. Change it in the .conf file and start "
                    "the broker again"
                )

    def _forbidden(self) -> set[str]:
        return {*_NEVER_CHANGED, *(key.strip() for key in self.broker.config_black_list.split(";"))}

    def save(self, change: SettingsChange) -> None:
        """Keep the changed values, and only them: what was written by hand stays as it is. Raises OSError."""
        if change.values:
            before = (self._file.load() or b"").decode("utf-8", "surrogateescape")
            self._file.save(with_changes(before, change.values).encode("utf-8", "surrogateescape"))

    def apply(self, change: SettingsChange) -> None:
        """Let the change take effect where it can."""
        before = self.pairs()
        self.broker, self.store = change.broker, change.store
        self.data_version = self.data_version.next(self._clock.now_ms())
        changed = {key for key, value in self.pairs().items() if before[key] != value}
        if changed:
            later = changed - self.followed_keys
            _logger.info(
                "settings changed now=%s after_restart=%s", ",".join(sorted(changed - later)), ",".join(sorted(later))
            )
        for keys, apply in self._followers:
            if keys & changed:
                apply()


def with_changes(text: str, values: Mapping[str, str]) -> str:
    """A properties file with other values at its end, where they count more; comments and order stay."""
    by_hand, _, changed = text.partition(_MARK + "\n")
    pairs = parse_properties(changed) | dict(values)
    gap = "\n\n" if by_hand.strip() else ""  # a blank line ends even a last line that goes on with a backslash
    return f"{by_hand.rstrip()}{gap}{_MARK}\n{properties_text(pairs)}"
