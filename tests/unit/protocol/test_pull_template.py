"""Frames of pulls from constant pieces: byte for byte those of whole headers."""

import pytest

from skyrocket.protocol.frames import encode
from skyrocket.protocol.pull_template import PullTemplate
from skyrocket.protocol.requests.pulling import PullMessage
from skyrocket.remoting.exchange import command_of


def pull(queue_offset: int, committed: int, **more: str | int) -> PullMessage:
    fields: dict[str, str | int] = {
        "consumer_group": 'G "queueOffset":"0',
        "topic": "Orders",
        "queue_id": 0,
        "max_msg_nums": 32,
        "sys_flag": 2,
        "suspend_timeout_millis": 15_000,
        **more,
    }
    return PullMessage(queue_offset=queue_offset, commit_offset=committed, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("more", [{}, {"subscription": '"commitOffset":"0', "max_msg_bytes": 0, "broker_name": "b"}])
@pytest.mark.parametrize(("opaque", "queue_offset", "committed"), [(0, 0, 0), (7, 12, 3), (2**31 - 1, 2**62, 2**61)])
def test_a_frame_is_the_one_that_a_whole_header_would_give(
    more: dict[str, str | int], opaque: int, queue_offset: int, committed: int
) -> None:
    template = PullTemplate(command_of(pull(0, 0, **more)))
    whole = command_of(pull(queue_offset, committed, **more))
    whole.opaque = opaque
    assert template.frame(opaque, queue_offset, committed) == encode(whole)
