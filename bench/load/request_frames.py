"""Request frames made once and patched: what changes from message to message is filled into text of constant length.

What a Java producer sends with every message is here too: a unique key of its own and the time of birth, both different
each time, so that the server's index and log have the work that they have in earnest.
"""

import os
import time
from struct import Struct

from skyrocket.format.batch import BatchElement, encode_batch
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.frames import encode
from skyrocket.protocol.requests.messaging import SendBatchMessage, SendMessageV2
from skyrocket.protocol.requests.pulling import PullMessage
from skyrocket.remoting.exchange import command_of

FIRST_OPAQUE = 1_000_000_000  # ten digits, whatever slot is added
PRODUCER_GROUP, CONSUMER_GROUP = "LoadProducers", "LoadConsumers"

_PREFIX = Struct(">ii")
_BIRTH = 1_111_111_111_111
_KEY_MARK = "@@@@@@@@"
_PULL_OFFSET = 8_888_888_888_888_888_888
_SUBSCRIPTION_IN_HEADER = 0x4


class SendFrame:
    """A send of one message, or of a batch, to one queue."""

    def __init__(
        self, topic: str, queue_id: int, queues: int, body_size: int, batch: int, tag: str, timer_seconds: int = 0
    ) -> None:
        self.messages = batch
        body = b"x" * body_size
        properties = f"UNIQ_KEY\x01{_key_prefix()}{_KEY_MARK}\x02WAIT\x01true\x02" + (
            f"TAGS\x01{tag}\x02" if tag else ""
        )
        if timer_seconds:
            properties += f"TIMER_DELAY_SEC\x01{timer_seconds + queue_id}\x02"
        kind = SendMessageV2 if batch == 1 else SendBatchMessage
        request = kind(
            producer_group=PRODUCER_GROUP,
            topic=topic,
            default_topic="TBW102",
            default_topic_queue_nums=queues,
            queue_id=queue_id,
            sys_flag=0,
            born_timestamp=_BIRTH,
            flag=0,
            properties=properties,
            reconsume_times=0,
            batch=batch > 1,
        )
        if batch > 1:
            body = encode_batch([BatchElement(0, body, properties.encode())] * batch)
        command = command_of(request, body)
        command.opaque = FIRST_OPAQUE
        frame = encode(command)
        head = frame[: len(frame) - len(body)].replace(b"%", b"%%")
        head = head.replace(str(_BIRTH).encode(), b"%013d").replace(_KEY_MARK.encode(), b"%08X")
        self._head = head.replace(str(FIRST_OPAQUE).encode(), b"%010d")
        self._body = body if batch == 1 else body.replace(b"%", b"%%").replace(_KEY_MARK.encode(), b"%08X")

    def patched(self, key: int, born_ms: int, slot: int) -> bytes:
        """The frame for this slot; keys from `key` on are used, one per message."""
        head = self._head % (born_ms, key & 0xFFFFFFFF, FIRST_OPAQUE + slot)
        if self.messages == 1:
            return head + self._body
        return head + self._body % tuple(number & 0xFFFFFFFF for number in range(key, key + self.messages))


class PullFrame:
    """A pull from one queue that does not wait for messages."""

    def __init__(self, topic: str, queue_id: int, at_most: int) -> None:
        request = PullMessage(
            consumer_group=CONSUMER_GROUP,
            topic=topic,
            queue_id=queue_id,
            queue_offset=_PULL_OFFSET,
            max_msg_nums=at_most,
            sys_flag=_SUBSCRIPTION_IN_HEADER,
            commit_offset=0,
            suspend_timeout_millis=0,
            subscription="*",
            expression_type="TAG",
        )
        command = RemotingCommand(request.code, FIRST_OPAQUE, ext_fields=request.ext_fields())
        header = encode(command)[_PREFIX.size :].replace(b"%", b"%%")
        header = header.replace(str(_PULL_OFFSET).encode(), b"%d")
        self._header = header.replace(str(FIRST_OPAQUE).encode(), b"%010d")

    def patched(self, queue_offset: int, slot: int) -> bytes:
        """The frame that pulls from this queue offset on."""
        header = self._header % (queue_offset, FIRST_OPAQUE + slot)
        return _PREFIX.pack(len(header) + 4, len(header)) + header


def _key_prefix() -> str:
    """24 of the 32 digits of a unique key: those that tell producers and runs apart."""
    return f"7F000001{os.getpid() & 0xFFFF:04X}{time.time_ns() // 1000 & 0xFFFFFFFFFFFF:012X}"
