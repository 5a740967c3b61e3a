"""Somebody makes topics as wide as he can and asks about all of their queues, again and again."""

from pathlib import Path

import pytest

from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.requests.admin_topics import GetTopicStatsInfo, UpdateAndCreateTopic
from skyrocket.protocol.requests.pop import Notification, PeekMessage, PopMessage
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


QUESTIONS = {
    "statistics": GetTopicStatsInfo(topic="Wide"),
    "pops": PopMessage(
        consumer_group="G",
        topic="Wide",
        queue_id=-1,
        max_msg_nums=32,
        invisible_time=60_000,
        poll_time=0,
        init_mode=0,
    ),
    "peeks": PeekMessage(consumer_group="G", topic="Wide", queue_id=-1, max_msg_nums=32),
    "notifications": Notification(consumer_group="G", topic="Wide", queue_id=-1, poll_time=0, born_time=0),
}


@pytest.mark.parametrize(
    ("kind", "seconds"),
    [
        ("statistics", 3.0),
        ("pops", 3.0),
        ("peeks", 3.0),
        ("notifications", 3.0),
        pytest.param("statistics", 15.0, marks=pytest.mark.slow),
        pytest.param("pops", 15.0, marks=pytest.mark.slow),
        pytest.param("peeks", 15.0, marks=pytest.mark.slow),
        pytest.param("notifications", 15.0, marks=pytest.mark.slow),
    ],
)
def test_questions_about_the_widest_topic_do_not_hold_others_up(tmp_path: Path, kind: str, seconds: float) -> None:
    with Target(tmp_path) as target, HonestClient(target.broker) as honest:
        quiet = honest.during(2.0)
        with connections(target.broker, 8) as sockets:
            assert ask(sockets[0], _topic(2**31 - 1)).code == ResponseCode.INVALID_PARAMETER
            assert ask(sockets[0], _topic(4096)).code == ResponseCode.SUCCESS
            question = frame(QUESTIONS[kind])
            with Askers(sockets, lambda: question) as askers:
                attacked = honest.during(seconds)
        served = {ResponseCode.SUCCESS, ResponseCode.PULL_NOT_FOUND, ResponseCode.POLLING_TIMEOUT}
        assert askers.answers.keys() & served, "the attack was not served at all"
        assert target.peak_mb < 600
    attacked.must_be_served(quiet, f"{kind} of 4,096 queues {askers.answers}", strict=seconds > 10)
