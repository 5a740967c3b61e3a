"""Checks and features that a setting names."""

from dataclasses import replace
from pathlib import Path

import pytest

from skyrocket.broker.core.feature import Feature
from skyrocket.broker.core.parts import Parts
from skyrocket.broker.core.plug_ins import plug_ins
from skyrocket.config.sections import BrokerConfig
from skyrocket.errors import ConfigError
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import NoPermission
from skyrocket.protocol.requests.clients import HeartBeat
from skyrocket.remoting.peer import Peer
from tests.cluster.broker.broker_fixture import TOPIC, heartbeat, running_broker

NO_CALLABLE = 7


def reads_only(peer: Peer, request: RemotingCommand) -> None:
    """An access validator: nobody may send."""
    if request.code in (RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2):
        raise NoPermission(f"{peer.remote_address.host} may only read")


class CountingFeature(Feature):
    """A server hook: sees every request, and answers none."""

    def __init__(self, parts: Parts) -> None:
        self.seen: list[int] = []

    def checks(self) -> list[object]:  # type: ignore[override]
        return [lambda peer, request: self.seen.append(request.code)]


@pytest.mark.requirement("C170", "C152")
async def test_a_named_validator_is_asked_before_every_request(tmp_path: Path) -> None:
    config = replace(BrokerConfig(), access_validators=f"{__name__}:reads_only")
    async with running_broker(tmp_path, config) as given:
        with pytest.raises(NoPermission, match=r"127\.0\.0\.1 may only read"):
            await given.send(b"x")
        await given.client.call(given.address, HeartBeat(), heartbeat("one"))
        assert given.broker.store.max_offset(TOPIC, 0) == 0


@pytest.mark.requirement("C170")
async def test_a_named_feature_is_one_of_the_broker(tmp_path: Path) -> None:
    config = replace(BrokerConfig(), plug_ins=f" {__name__}:CountingFeature ; ")
    async with running_broker(tmp_path, config) as given:
        await given.send(b"x")
        await given.client.call(given.address, HeartBeat(), heartbeat("one"))
        assert given.broker.feature(CountingFeature).seen == [RequestCode.SEND_MESSAGE_V2, RequestCode.HEART_BEAT]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("nowhere", "is not of the form module:attribute"),
        ("no.such.module:check", "no.such.module cannot be imported"),
        (f"{__name__}:absent", "has no 'absent'"),
        (f"{__name__}:NO_CALLABLE", "a function or class is needed"),
    ],
)
def test_a_name_that_means_nothing_is_refused_with_the_reason(name: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=rf"accessValidators: .*{reason}"):
        plug_ins("accessValidators", name)
