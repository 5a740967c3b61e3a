"""RocketMQ's settings that promise what Skyrocket does not keep: refused at the start, or named once in the log.

Most settings that we do not have only tune threads, buffers and caches; they are taken without a word so that `.conf`
files start us unchanged. These are not tuning. Whoever would lose messages or a whole store by a promise that is not
kept is refused; whoever would only miss a behaviour is told.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from skyrocket.errors import ConfigError


class _Promise(NamedTuple):
    """A key, the values that promise something, and what to know about it."""

    key: str
    promises: Callable[[str], bool]
    reason: str


def _on(value: str) -> bool:
    return value.strip().lower() == "true"


def _off(value: str) -> bool:
    return value.strip().lower() == "false"


def _given(value: str) -> bool:
    return bool(value.strip())


def _rocksdb(value: str) -> bool:
    return "rocksdb" in value.lower()


_REFUSED: Final = (
    _Promise("enableDLegerCommitLog", _on, "the log of DLedger has another format and is not served"),
    _Promise("duplicationEnable", _on, "logs are copied by slaves alone (brokerRole=SLAVE)"),
    _Promise("storeType", _rocksdb, "queues are kept in files; `skyrocket convert` turns a RocksDB store into files"),
    _Promise(
        "configManagerVersion",
        lambda value: value.strip().lower() == "v2",
        "topics, groups and offsets are kept in JSON files; `skyrocket convert` turns a RocksDB store into files",
    ),
    _Promise("timerRocksDBEnable", _on, "timers are kept in the timer wheel's files"),
    _Promise("transRocksDBEnable", _on, "half messages are kept in their topic"),
    _Promise("messageStorePlugIn", _given, "plug-ins of Java cannot be loaded"),
    _Promise("readOnlyCommitLogStorePaths", _given, "the log must lie in one directory"),
)

_TOLD: Final = (
    _Promise("fetchControllerAddrByDnsLookup", _on, "controllers are those of controllerAddr"),
    _Promise("longPollingEnable", _off, "pulls that find nothing are held as long as they ask for"),
    _Promise("rejectPullConsumerEnable", _on, "pull consumers are served"),
    _Promise("disableConsumeIfConsumerReadSlowly", _on, "a group that falls behind is not stopped"),
    _Promise("coldDataFlowControlEnable", _on, "reads of old messages are not slowed down"),
    _Promise("enableCalcFilterBitMap", _on, "SQL92 filters look at the record itself"),
    _Promise("brokerTopicEnable", _off, "the topic named after the broker is made"),
    _Promise("clusterTopicEnable", _off, "the topic named after the cluster is made"),
    _Promise("fetchNamesrvAddrByAddressServer", _on, "name servers are those of namesrvAddr"),
    _Promise("fetchNameSrvAddrByDnsLookup", _on, "name servers are those of namesrvAddr"),
    _Promise("fastFailIfNoBufferInStorePool", _on, "a send waits for a buffer of the transient pool"),
    _Promise("timerStopEnqueue", _on, "timers are taken"),
    _Promise("timerStopDequeue", _on, "timers are delivered"),
    _Promise("notifyConsumerIdsChangedEnable", _off, "members of a group hear at once that another came or left"),
    _Promise("enableSplitRegistration", _on, "all topics are registered at once"),
    _Promise("enablePopBufferMerge", _on, "check points of pops are written at once, not merged in memory"),
    _Promise("enablePopMessageThreshold", _on, "popped messages are not counted against a limit"),
    _Promise("popConsumerKVServiceEnable", _on, "check points of pops are kept in the revive topic"),
    _Promise("enableNotifyAfterPopOrderLockRelease", _off, "pops that wait are woken when an ordered queue is free"),
)


def refuse_unkept_promises(pairs: Mapping[str, str]) -> None:
    """Raises ConfigError for the first setting whose promise would not be kept."""
    for key, value, reason in _asked(_REFUSED, pairs):
        raise ConfigError(f"{key}={value} is refused: {reason}. Leave the setting out to start without that promise")


def ignored_promises(pairs: Mapping[str, str]) -> list[str]:
    """A sentence for every setting that asks for a behaviour that is not there."""
    return [f"{key}={value} has no effect: {reason}" for key, value, reason in _asked(_TOLD, pairs)]


def _asked(promises: tuple[_Promise, ...], pairs: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    for key, promises_something, reason in promises:
        if key in pairs and promises_something(pairs[key]):
            yield key, pairs[key], reason
