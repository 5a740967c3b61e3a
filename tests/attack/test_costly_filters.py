"""Consumers with conditions that are as long as they are allowed to be, each time another one."""

from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.requests.pulling import PullMessage
from tests.attack.attackers import Askers, ask, connections, frame
from tests.attack.honest import HonestClient
from tests.attack.target import Target
from tests.cluster.broker.broker_fixture import message, pull_request

_names = count()


def _pull(terms: int) -> PullMessage:
    name = f"p{next(_names)}"
    expression = " OR ".join(f"{name} = {number}" for number in range(terms))
    return replace(pull_request(topic="Orders", expression=expression), expression_type="SQL92")


@pytest.mark.parametrize("seconds", [3.0, pytest.param(15.0, marks=pytest.mark.slow)])
def test_costly_conditions_do_not_hold_others_up(tmp_path: Path, seconds: float) -> None:
    with Target(tmp_path, "enablePropertyFilter=true") as target, HonestClient(target.broker) as honest:
        quiet = honest.during(2.0)
        with connections(target.broker, 4) as sockets:
            for _ in range(200):
                ask(sockets[0], frame(message("Orders"), b"x"))
            monstrous = ask(sockets[0], frame(replace(_pull(1), subscription="a=1 OR " * 200_000 + "a=1")))
            assert monstrous.code == ResponseCode.SUBSCRIPTION_PARSE_FAILED
            tags = replace(_pull(1), expression_type="TAG", subscription="a||" * 2_700_000)
            assert ask(sockets[0], frame(tags)).code == ResponseCode.SUBSCRIPTION_PARSE_FAILED
            before_mb = target.resident_mb
            with Askers(sockets, lambda: frame(_pull(1000))) as askers:
                attacked = honest.during(seconds)
        assert set(askers.answers) == {ResponseCode.PULL_RETRY_IMMEDIATELY, ResponseCode.SYSTEM_BUSY}
        assert target.peak_mb - before_mb < 300
    attacked.must_be_served(quiet, f"conditions of a thousand terms {askers.answers}", strict=seconds > 10)
