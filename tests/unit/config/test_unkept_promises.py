"""A setting that promises more than is kept stops the start; one that is only missed is named; tuning is taken."""

import pytest

from skyrocket.config.rocketmq_keys import BROKER_KEYS
from skyrocket.config.sections import BrokerConfig, StoreConfig
from skyrocket.config.sources import keys_of
from skyrocket.config.unkept_promises import _REFUSED, _TOLD, ignored_promises, refuse_unkept_promises
from skyrocket.errors import ConfigError
from skyrocket.testing.broker_host import configs


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("enableDLegerCommitLog", "true"),
        ("storeType", "defaultRocksDB"),
        ("configManagerVersion", "v2"),
        ("messageStorePlugIn", "org.apache.rocketmq.tieredstore.TieredMessageStore"),
    ],
)
def test_a_promise_that_is_not_kept_is_refused_by_its_name(key: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"^{key}={value} is refused: .*Leave the setting out"):
        refuse_unkept_promises({key: value})
    with pytest.raises(ConfigError, match=f"^{key}="):
        configs({key: value})


@pytest.mark.parametrize(
    ("key", "value"),
    [("brokerRole", "SYNC_MASTER"), ("inSyncReplicas", "2"), ("storeType", "default"), ("messageStorePlugIn", "")],
)
def test_what_rocketmq_has_by_default_is_taken(key: str, value: str) -> None:
    refuse_unkept_promises({key: value})
    assert ignored_promises({key: value}) == []


def test_what_is_only_missed_is_named_with_the_reason() -> None:
    assert ignored_promises({"longPollingEnable": "false", "longPollingX": "false"}) == [
        "longPollingEnable=false has no effect: pulls that find nothing are held as long as they ask for"
    ]
    told = ignored_promises({"enablePopBufferMerge": "true", "enableNotifyAfterPopOrderLockRelease": "false"})
    assert [sentence.partition(" has no effect: ")[0] for sentence in told] == [
        "enablePopBufferMerge=true",
        "enableNotifyAfterPopOrderLockRelease=false",
    ]
    assert not ignored_promises({"enablePopBufferMerge": "false", "enableNotifyAfterPopOrderLockRelease": "true"})


def test_the_tables_name_keys_of_rocketmq_that_we_do_not_have() -> None:
    named = {promise.key for promise in (*_REFUSED, *_TOLD)}
    assert named <= BROKER_KEYS
    assert not named & (keys_of(BrokerConfig) | keys_of(StoreConfig))
