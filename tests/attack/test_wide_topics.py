"""Somebody makes topics as wide as he can and asks about all of their queues, again and again."""

from pathlib import Path

import pytest

from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.requests.admin_topics import GetTopicStatsInfo, UpdateAndCreateTopic
from tests.attack.attackers import Askers, ask, connections, frame
from tests.attack.honest import HonestClient
from tests.attack.target import Target


def _topic(queues: int) -> bytes:
    return frame(
        UpdateAndCreateTopic(
            topic="Wide",
            default_topic="TBW102",
            read_queue_nums=queues,
            write_queue_nums=queues,
            perm=6,
            topic_filter_type="SINGLE_TAG",
            order=False,
        )
    )


@pytest.mark.parametrize("seconds", [3.0, pytest.param(15.0, marks=pytest.mark.slow)])
def test_questions_about_the_widest_topic_do_not_hold_others_up(tmp_path: Path, seconds: float) -> None:
    with Target(tmp_path) as target, HonestClient(target.broker) as honest:
        quiet = honest.during(2.0)
        with connections(target.broker, 8) as sockets:
            assert ask(sockets[0], _topic(2**31 - 1)).code == ResponseCode.INVALID_PARAMETER
            assert ask(sockets[0], _topic(4096)).code == ResponseCode.SUCCESS
            question = frame(GetTopicStatsInfo(topic="Wide"))
            with Askers(sockets, lambda: question) as askers:
                attacked = honest.during(seconds)
        assert askers.answers[ResponseCode.SUCCESS], "the attack was not served at all"
        assert target.peak_mb < 600
    attacked.must_be_served(quiet, f"statistics of 4,096 queues {askers.answers}", strict=seconds > 10)
