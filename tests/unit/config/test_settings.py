"""Settings: RocketMQ's keys and defaults, bounds, text values, and help for a mistyped key."""

import dataclasses
from enum import Enum

import pytest

from skyrocket.config.sections import BrokerRole, FlushDiskType, StoreConfig
from skyrocket.config.sections.setting import parse_value, section_from, setting
from skyrocket.errors import ConfigError

# What RocketMQ 5.4.0 has when its .conf file says nothing.
ROCKETMQ_DEFAULTS = {
    "mappedFileSizeCommitLog": 1_073_741_824,
    "mappedFileSizeConsumeQueue": 6_000_000,
    "mapperFileSizeBatchConsumeQueue": 13_800_000,
    "maxHashSlotNum": 5_000_000,
    "maxIndexNum": 20_000_000,
    "maxMessageSize": 4_194_304,
    "flushDiskType": FlushDiskType.ASYNC_FLUSH,
    "flushCommitLogTimed": True,
    "flushIntervalCommitLog": 500,
    "flushCommitLogLeastPages": 4,
    "flushCommitLogThoroughInterval": 10_000,
    "commitIntervalCommitLog": 200,
    "commitCommitLogLeastPages": 4,
    "commitCommitLogThoroughInterval": 200,
    "flushIntervalConsumeQueue": 1000,
    "flushConsumeQueueLeastPages": 2,
    "flushConsumeQueueThoroughInterval": 60_000,
    "syncFlushTimeout": 5000,
    "transientStorePoolEnable": False,
    "transientStorePoolSize": 5,
    "messageIndexEnable": True,
    "enableMultiDispatch": False,
    "messageDelayLevel": "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h",
    "checkCRCOnRecover": True,
    "enabledAppendPropCRC": False,
    "forceVerifyPropCRC": False,
    "maxTransferBytesOnMessageInMemory": 262_144,
    "maxTransferCountOnMessageInMemory": 32,
    "maxTransferBytesOnMessageInDisk": 65_536,
    "maxTransferCountOnMessageInDisk": 8,
    "accessMessageInMemoryMaxRatio": 40,
    "maxMsgsNumBatch": 64,
    "defaultQueryMaxNum": 32,
    "fileReservedTime": 72,
    "deleteWhen": "04",
    "diskMaxUsedSpaceRatio": 75,
    "diskSpaceCleanForciblyRatio": 85,
    "diskSpaceWarningLevelRatio": 90,
    "cleanFileForciblyEnable": True,
    "cleanResourceInterval": 10_000,
    "deleteCommitLogFilesInterval": 100,
    "deleteConsumeQueueFilesInterval": 100,
    "deleteFileBatchMax": 10,
    "osPageCacheBusyTimeOutMills": 1000,
    "brokerRole": BrokerRole.ASYNC_MASTER,
    "haTransferBatchSize": 32 << 10,
    "haSendHeartbeatInterval": 5000,
    "haHousekeepingInterval": 20_000,
    "haMaxGapNotInSync": 256 << 20,
    "haMaxTimeSlaveNotCatchup": 15_000,
    "slaveTimeout": 3000,
    "minInSyncReplicas": 1,
}


def by_key(section: object) -> dict[str, object]:
    return {
        field.metadata["key"]: getattr(section, field.name)
        for field in dataclasses.fields(section)  # type: ignore[arg-type]
    }


@pytest.mark.requirement("A004", "A012", "A018", "A036", "A045", "A096", "A097", "A098", "A099", "A100", "E006", "E009")
@pytest.mark.requirement("C048", "C051", "C114")
@pytest.mark.parametrize("key", ROCKETMQ_DEFAULTS)
def test_the_default_of_a_setting_is_rocketmqs(key: str) -> None:
    assert by_key(StoreConfig())[key] == ROCKETMQ_DEFAULTS[key]


def test_every_setting_has_a_key_of_its_own_and_help() -> None:
    fields = dataclasses.fields(StoreConfig)
    keys = [field.metadata["key"] for field in fields]
    assert len(set(keys)) == len(keys)
    assert all(field.metadata["help"] for field in fields)


def test_a_rocketmq_conf_sets_what_it_names() -> None:
    config = section_from(
        StoreConfig,
        {
            "mappedFileSizeCommitLog": "262144",
            "flushDiskType": "SYNC_FLUSH",
            "transientStorePoolEnable": "true",
            "deleteWhen": "04;05",
            "fileReservedTime": " 48 ",
        },
    )
    assert config.commit_log_file_size == 262_144
    assert config.flush_disk_type is FlushDiskType.SYNC_FLUSH
    assert config.transient_pool
    assert config.delete_when == "04;05"
    assert config.file_reserved_hours == 48
    assert config.max_message_size == StoreConfig().max_message_size


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("flushDiskTyp", "flushDiskType"),
        ("fileReserveTime", "fileReservedTime"),
        ("mapedFileSizeCommitLog", "mappedFileSizeCommitLog"),
    ],
)
def test_an_unknown_key_is_named_with_its_nearest(typed: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=f"unknown setting '{typed}'; did you mean '{meant}'"):
        section_from(StoreConfig, {typed: "1"})


def test_a_key_like_no_other_is_named_alone_and_may_be_allowed() -> None:
    with pytest.raises(ConfigError, match=r"unknown setting 'zzz'$"):
        section_from(StoreConfig, {"zzz": "1"})
    assert section_from(StoreConfig, {"zzz": "1", "deleteWhen": "07"}, allow_unknown=True).delete_when == "07"


@pytest.mark.parametrize(
    ("key", "low", "high"),
    [
        ("diskMaxUsedSpaceRatio", 10, 95),
        ("diskSpaceCleanForciblyRatio", 30, 85),
        ("diskSpaceWarningLevelRatio", 35, 90),
        ("accessMessageInMemoryMaxRatio", 1, 100),
    ],
)
def test_bounds_are_kept_on_both_sides(key: str, low: int, high: int) -> None:
    for value in (low, high):
        assert by_key(section_from(StoreConfig, {key: str(value)}))[key] == value
    with pytest.raises(ConfigError, match=f"{key}={low - 1} is below the smallest allowed value {low}"):
        section_from(StoreConfig, {key: str(low - 1)})
    with pytest.raises(ConfigError, match=f"{key}={high + 1} is above the largest allowed value {high}"):
        section_from(StoreConfig, {key: str(high + 1)})


def test_bounds_hold_for_settings_made_in_code_too() -> None:
    with pytest.raises(ConfigError, match="mappedFileSizeCommitLog"):
        StoreConfig(commit_log_file_size=10)


@pytest.mark.parametrize(
    ("key", "text", "expected"),
    [
        ("flushIntervalCommitLog", "soon", "a whole number"),
        ("flushIntervalCommitLog", "1.5", "a whole number"),
        ("transientStorePoolEnable", "yes", "true or false"),
        ("flushDiskType", "SOMETIMES", "one of ASYNC_FLUSH, SYNC_FLUSH"),
    ],
)
def test_a_value_of_the_wrong_kind_is_named_with_what_was_expected(key: str, text: str, expected: str) -> None:
    with pytest.raises(ConfigError, match=f"{key}='{text}' is not {expected}"):
        section_from(StoreConfig, {key: text})


class Colour(Enum):
    RED = "RED"


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [("TRUE", bool, True), ("false", bool, False), (" 7 ", int, 7), ("0.5", float, 0.5), ("red", Colour, Colour.RED)],
)
def test_text_becomes_a_value_of_its_kind(text: str, kind: object, value: object) -> None:
    assert parse_value("key", text, kind) == value


def test_a_section_of_ones_own_needs_only_settings() -> None:
    @dataclasses.dataclass(frozen=True)
    class Section:
        size: int = setting(3, key="theSize", min=1, help="how large")

    assert section_from(Section, {"theSize": "5"}).size == 5
    assert section_from(Section, {}).size == 3


def test_settings_cannot_be_changed_afterwards() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        StoreConfig().delete_when = "05"  # type: ignore[misc]
