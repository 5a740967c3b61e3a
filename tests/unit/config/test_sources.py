"""Settings from a RocketMQ .conf file, the environment and the command line."""

from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.config.rocketmq_keys import BROKER_KEYS, NAME_SERVER_KEYS
from skyrocket.config.sections import NameServerConfig, StoreConfig
from skyrocket.config.sections.setting import section_from
from skyrocket.config.sources import (
    environment_name,
    gather,
    pairs_of,
    parse_properties,
    properties_text,
    read_conf,
    unknown_settings,
)
from skyrocket.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1\nb = 2\r\n  c: 3\rd 4\ne\t=\t5", {"a": "1", "b": "2", "c": "3", "d": "4", "e": "5"}),
        ("# a=1\n! b=2\n\n   \n  # c=3\nd=4", {"d": "4"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=x=y:z", {"a": "x=y:z"}),
        ("a\nb=", {"a": "", "b": ""}),
        ("a=1\\\n   2\\\n   3\nb=4", {"a": "123", "b": "4"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=#no comment \nb=1 ", {"a": "#no comment ", "b": "1 "}),
        ("a\\=b=c\\:d\\te\\q", {"a=b": "c:d\teq"}),
        ("a=\\u4E2D\\u6587", {"a": "中文"}),
        ("a=1\\", {"a": "1"}),
        ("= nothing", {"": "nothing"}),
        ("", {}),
    ],
)
def test_the_syntax_of_properties(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


def test_a_broken_escape_is_named_with_its_line() -> None:
    with pytest.raises(ConfigError, match=r"x\.conf, line 3"):
        parse_properties("a=1\n#\nb=\\u12", "x.conf")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
def test_a_file_of_any_usual_encoding(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "broker.conf"
    path.write_bytes("# é\nbrokerName=café\n".encode(encoding))
    assert read_conf(path) == {"brokerName": "café"}


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.conf cannot be read: No such file"):
        read_conf(tmp_path / "none.conf")


def test_later_sources_win(tmp_path: Path) -> None:
    path = tmp_path / "namesrv.conf"
    path.write_text("listenPort=1\nbindAddress=1.1.1.1\nserverWorkerThreads=8\norderMessageEnable=true\n")
    environment = {"NS_LISTEN_PORT": "2", "NS_BIND_ADDRESS": "2.2.2.2", "NS_NO_SETTING": "x", "PATH": "/bin"}
    pairs = gather([NameServerConfig], conf=path, environment=environment, prefix="NS_", options={"listenPort": "3"})
    config = section_from(NameServerConfig, pairs, allow_unknown=True)
    assert (config.listen_port, config.bind_address, config.order_messages) == (3, "2.2.2.2", True)
    assert unknown_settings(pairs, [NameServerConfig], NAME_SERVER_KEYS) == []


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("listenPort", "SKYROCKET_LISTEN_PORT"),
        ("checkCRCOnRecover", "SKYROCKET_CHECK_CRC_ON_RECOVER"),
        ("brokerIP1", "SKYROCKET_BROKER_IP1"),
        ("tls.server.mode", "SKYROCKET_TLS_SERVER_MODE"),
    ],
)
def test_names_in_the_environment(key: str, name: str) -> None:
    assert environment_name(key) == name


def test_an_unknown_key_is_named_with_its_nearest() -> None:
    warnings = unknown_settings({"lisenPort": "1", "xyz": "2", "listenPort": "3"}, [NameServerConfig])
    assert warnings == [
        "unknown setting 'lisenPort' has no effect; did you mean 'listenPort'?",
        "unknown setting 'xyz' has no effect",
    ]


def test_a_section_as_text_is_the_same_section() -> None:
    config = StoreConfig(flush_timed=False, file_reserved_hours=7)
    text = properties_text(pairs_of(config))
    assert "flushCommitLogTimed=false\n" in text
    assert section_from(StoreConfig, parse_properties(text)) == config


def test_keys_that_are_not_ours_are_rocketmqs() -> None:
    rocketmqs = {field.metadata["key"] for field in fields(NameServerConfig) if not field.metadata["ours"]}
    assert rocketmqs <= NAME_SERVER_KEYS
    assert {"brokerClusterName", "namesrvAddr", "listenPort", "deleteWhen"} <= BROKER_KEYS


@given(st.dictionaries(st.text(min_size=1), st.text()))
def test_any_pairs_outlive_their_text(pairs: dict[str, str]) -> None:
    assert parse_properties(properties_text(pairs)) == pairs
