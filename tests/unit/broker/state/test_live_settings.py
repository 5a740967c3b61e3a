"""Settings are checked, kept and followed."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.broker.state.live_settings import LiveSettings, with_changes
from skyrocket.config.sections import BrokerConfig, StoreConfig
from skyrocket.config.sources import parse_properties
from skyrocket.protocol.errors import NoPermission, SystemFailure
from skyrocket.testing.clock import FakeClock

KEYS: Final = ("fileReservedTime", "deleteWhen", "regionId", "traceOn")
texts = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=8)


class MemoryFile:
    """A settings file without a disk."""

    def __init__(self, content: bytes | None = None) -> None:
        self.content = content

    def load(self) -> bytes | None:
        return self.content

    def save(self, content: bytes) -> None:
        self.content = content


def settings(file: MemoryFile | None = None, broker: BrokerConfig | None = None) -> LiveSettings:
    return LiveSettings(broker or BrokerConfig(), StoreConfig(), file or MemoryFile(), FakeClock())


def change(live: LiveSettings, text: str) -> None:
    wanted = live.changed_by(text)
    live.save(wanted)
    live.apply(wanted)


def test_followers_hear_of_their_own_keys_and_only_when_the_value_is_another() -> None:
    live, heard = settings(), []
    live.follow(lambda: heard.append("retention"), "fileReservedTime", "deleteWhen")
    live.follow(lambda: heard.append("trace"), "traceOn")
    change(live, "fileReservedTime=72")
    assert heard == []
    change(live, "fileReservedTime=1\ndeleteWhen=05")
    assert heard == ["retention"]
    change(live, "regionId=other")
    assert heard == ["retention"]
    assert live.broker.region_id == "other"
    assert live.followed_keys == {"fileReservedTime", "deleteWhen", "traceOn"}
    assert live.data_version.counter == 3


def test_a_follower_of_a_key_that_does_not_exist_is_a_mistake() -> None:
    with pytest.raises(AssertionError, match="noSuchKey"):
        settings().follow(lambda: None, "noSuchKey")


def test_nothing_is_written_for_keys_that_we_do_not_have() -> None:
    file = MemoryFile()
    change(settings(file), "useEpollNativeSelector=true\nnoSuchKey=1")
    assert file.content is None


def test_what_is_forbidden_or_wrong_changes_neither_values_nor_file() -> None:
    file = MemoryFile(b"deleteWhen=03\n")
    live = settings(file, BrokerConfig(config_black_list="traceOn; regionId"))
    for text in ("regionId=x", "configBlackList=", "brokerConfigPath=x", "rocketmqHome=x", "deleteWhen=01\ntraceOn=no"):
        with pytest.raises(NoPermission, match="Can not update config in black list"):
            live.changed_by(text)
    with pytest.raises(SystemFailure, match="fileReservedTime"):
        live.changed_by("deleteWhen=01\nfileReservedTime=-1")
    assert (file.content, live.store.delete_when) == (b"deleteWhen=03\n", "04")


@given(
    by_hand=st.dictionaries(st.sampled_from(KEYS), texts),
    changes=st.lists(st.dictionaries(st.sampled_from(KEYS), texts)),
)
def test_later_changes_win_and_what_was_written_by_hand_stays(
    by_hand: dict[str, str], changes: list[dict[str, str]]
) -> None:
    original = "".join(f"# {key}\n{key} = {value.encode().hex()}\n" for key, value in by_hand.items())
    text, expected = original, {key: value.encode().hex() for key, value in by_hand.items()}
    for values in changes:
        text, expected = with_changes(text, values), expected | values
        assert parse_properties(text) == expected
        assert text.startswith(original.rstrip())
    assert text.count("# Changed while") <= 1
