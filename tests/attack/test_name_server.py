"""Strangers register monsters at the name server that lives in the broker's own process."""

import struct
import zlib
from pathlib import Path

import pytest

from skyrocket.model.data_version import DataVersion
from skyrocket.protocol.bodies.topics import DATA_VERSION
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.requests.broker_registration import RegisterBroker
from skyrocket.protocol.requests.kv_config import PutKvConfig
from tests.attack.attackers import Askers, ask, connections, frame
from tests.attack.honest import HonestClient
from tests.attack.target import Target


def _packed(topics: int) -> bytes:
    version = DATA_VERSION.encode(DataVersion())
    body = [struct.pack(">i", len(version)), version, struct.pack(">i", topics)]
    for number in range(topics):
        text = b"T%07d 4 4 6 SINGLE_TAG {}" % number
        body += [struct.pack(">i", len(text)), text]
    return zlib.compress(b"".join(body))


def _registration(body: bytes) -> bytes:
    request = RegisterBroker(
        broker_name="broker-x",
        broker_addr="10.0.0.1:10911",
        cluster_name="C",
        ha_server_addr="10.0.0.1:10912",
        broker_id=0,
        compressed=True,
        body_crc32=0,
    )
    return frame(request, body)


@pytest.mark.parametrize("seconds", [3.0, pytest.param(15.0, marks=pytest.mark.slow)])
def test_monstrous_registrations_and_values_do_not_hold_others_up(tmp_path: Path, seconds: float) -> None:
    monsters = [
        _registration(zlib.compress(bytes(260 << 20))),
        _registration(_packed(1_000_000)),
        frame(PutKvConfig(namespace="N", key="k", value="x" * (15 << 20))),
    ]
    with Target(tmp_path) as target, HonestClient(target.broker) as honest:
        quiet = honest.during(2.0)
        with connections(target.name_server, 3) as sockets:
            for monster in monsters:
                assert ask(sockets[0], monster).code == ResponseCode.SYSTEM_ERROR
            before_mb = target.resident_mb
            with Askers(sockets[:1], lambda: monsters[0]), Askers(sockets[1:], lambda: monsters[1]):
                attacked = honest.during(seconds)
        assert target.peak_mb - before_mb < 400
    attacked.must_be_served(quiet, "a zlib bomb and a million topics, again and again", strict=seconds > 10)
