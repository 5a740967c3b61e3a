"""The request of a consumer that takes all messages of a queue and does not wait for more."""

from skyrocket.protocol.requests.pulling import PullMessage

WITH_SUBSCRIPTION = 0x4


def pull_at(group: str, topic: str, queue_id: int, offset: int, most: int = 32) -> PullMessage:
    return PullMessage(
        consumer_group=group,
        topic=topic,
        queue_id=queue_id,
        queue_offset=offset,
        max_msg_nums=most,
        sys_flag=WITH_SUBSCRIPTION,
        commit_offset=0,
        suspend_timeout_millis=0,
        subscription="*",
        expression_type="TAG",
    )
