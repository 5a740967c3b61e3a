"""KV values and settings that change at run time."""

import pytest

from skyrocket.config.sections import NameServerConfig
from skyrocket.namesrv.kv_config import KvConfig
from skyrocket.namesrv.settings import live_settings
from skyrocket.protocol.errors import NoPermission, QueryNotFound, SystemFailure

Namespaces = dict[str, dict[str, str]]


class MemoryFile:
    """A KvFile; `broken` fails every save."""

    def __init__(self, content: Namespaces | None = None) -> None:
        self.content = content
        self.broken = False

    def load(self) -> Namespaces | None:
        return self.content

    def save(self, content: Namespaces) -> None:
        if self.broken:
            raise OSError("disk full")
        self.content = content


class Saved:
    """A SettingsFile."""

    def __init__(self) -> None:
        self.content = b""

    def load(self) -> bytes | None:
        return self.content

    def save(self, content: bytes) -> None:
        self.content = content


def test_values_are_kept_and_every_change_is_saved() -> None:
    file = MemoryFile()
    kv = KvConfig(file)
    kv.put("ns", "k", "v")
    kv.put("ns", "k", "w")
    kv.put("other", "k", "x")
    assert (kv.get("ns", "k"), kv.get("ns", "none"), kv.get("none", "k")) == ("w", None, None)
    assert file.content == {"ns": {"k": "w"}, "other": {"k": "x"}}
    assert KvConfig(file).namespace("ns") == {"k": "w"}
    kv.delete("ns", "k")
    kv.delete("none", "k")
    assert file.content == {"ns": {}, "other": {"k": "x"}}
    assert (kv.namespace("ns"), kv.namespace("none")) == ({}, None)


def test_what_is_not_there_is_said_in_rocketmqs_words() -> None:
    kv = KvConfig(MemoryFile())
    with pytest.raises(QueryNotFound, match=r"^No config item, Namespace: x Key: y$"):
        kv.required("x", "y")
    with pytest.raises(QueryNotFound, match=r"^No config item, Namespace: x$"):
        kv.required_namespace("x")


def test_a_change_that_cannot_be_saved_is_not_made() -> None:
    file = MemoryFile({"ns": {"k": "v"}})
    kv = KvConfig(file)
    file.broken = True
    with pytest.raises(OSError, match="disk full"):
        kv.put("ns", "k", "w")
    assert kv.get("ns", "k") == "v"


def test_settings_are_changed_and_saved() -> None:
    file = Saved()
    live = live_settings(NameServerConfig(), file)
    live.update("orderMessageEnable=true\nserverWorkerThreads=9\nnobodyKnowsThis=1\n")
    assert live.config.order_messages
    assert "orderMessageEnable=true\n" in live.text()
    assert file.content.decode() == live.text()
    assert live.text().splitlines() == sorted(live.text().splitlines())


def test_lines_of_others_stay_in_the_file_of_settings() -> None:
    file = Saved()
    file.content = b"# ours and theirs\ntls.server.mode=enforcing\norderMessageEnable=false\n"
    live_settings(NameServerConfig(), file).update("orderMessageEnable=true")
    assert b"\ntls.server.mode=enforcing\n" in file.content
    assert b"orderMessageEnable=true\n" in file.content


@pytest.mark.parametrize(
    ("text", "error", "remark"),
    [
        ("kvConfigPath=/tmp/x", NoPermission, "Can not update config in black list."),
        ("rocketmqHome=/tmp/x", NoPermission, "Can not update config in black list."),
        ("listenPort=1", NoPermission, "Can not update config in black list."),
        ("orderMessageEnable=true\nscanNotActiveBrokerInterval=often", SystemFailure, "a whole number"),
        ("scanNotActiveBrokerInterval=1", SystemFailure, "below the smallest"),
        ("a=\\u12", SystemFailure, "string2Properties error"),
    ],
)
def test_settings_that_may_not_be_changed(text: str, error: type[Exception], remark: str) -> None:
    file = Saved()
    live = live_settings(NameServerConfig(config_black_list="listenPort;x"), file)
    with pytest.raises(error, match=remark):
        live.update(text)
    assert not live.config.order_messages
    assert file.content == b""
