"""One topic of one producer: its queues in turn, and the constant parts of requests to each."""

from collections.abc import Sequence

from skyrocket.client.sending.message_encoding import SEND, SEND_BATCH, EncodedMessage
from skyrocket.client.sending.queue_selector import Rotation
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.codes import LanguageCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.send_template import SendTemplate


class TopicPublishInfo(Rotation):
    """Queues with their requests' fields; replaced when the route changes."""

    __slots__ = ("_fields", "_numbers", "_templates", "is_guess", "only_broker", "topic")

    def __init__(
        self,
        group: str,
        topic: str,
        queues: Sequence[MessageQueue],
        *,
        template_topic: str,
        template_queues: int,
        unit_mode: bool,
        is_guess: bool = False,
    ) -> None:
        super().__init__(queues)
        self.topic = topic
        self.is_guess = is_guess  # taken from the template topic: the topic itself does not exist yet
        brokers = {queue.broker_name for queue in self.queues}
        self.only_broker = brokers.pop() if len(brokers) == 1 else None  # the one that has all queues
        self._numbers = {queue: index for index, queue in enumerate(self.queues)}
        self._fields = [
            {
                "a": group,
                "b": topic,
                "c": template_topic,
                "d": str(template_queues),
                "e": str(queue.queue_id),
                "f": "0",
                "g": "",  # time and properties of the message: all else is alike, and in Java's order
                "h": "0",
                "i": "",
                "j": "0",
                "k": "true" if unit_mode else "false",
                "m": "false",
                "n": queue.broker_name,
            }
            for queue in self.queues
        ]
        self._templates: list[SendTemplate | None] = [None] * len(self.queues)

    def index_of(self, queue: MessageQueue) -> int | None:
        """Its place, None if the topic does not have it."""
        return self._numbers.get(queue)

    def template(self, index: int) -> SendTemplate:
        """Frames of plain messages for the queue at an index, as `command` would have them encoded."""
        made = self._templates[index]
        if made is None:
            example = RemotingCommand(SEND, ext_fields=self._fields[index], language=LanguageCode.PYTHON)
            made = self._templates[index] = SendTemplate(example)
        return made

    def command(self, index: int, out: EncodedMessage, now_ms: int, flag: int = 0) -> RemotingCommand:
        """The request that brings a message to the queue at an index."""
        fields = self._fields[index].copy()
        fields["g"] = str(now_ms)
        fields["i"] = out.properties
        if out.sys_flag:
            fields["f"] = str(out.sys_flag)
        if out.flag:
            fields["h"] = str(out.flag)
        if out.code == SEND_BATCH:
            fields["m"] = "true"
        if out.reconsume_times:
            fields["j"] = str(out.reconsume_times)
        if out.max_reconsume_times is not None:
            fields["l"] = str(out.max_reconsume_times)
        return RemotingCommand(out.code, 0, flag, fields, out.body)
