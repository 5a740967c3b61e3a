"""The puller of a lite pull consumer: it hands over answers as they came, for a poll that wants messages or columns."""

from skyrocket.client.consumer.pulled_answer import PulledAnswer
from skyrocket.client.consumer.puller import Puller
from skyrocket.protocol.bodies.subscription import SubscriptionData
from skyrocket.protocol.requests.pulling import PullMessageAnswer


class AnswerPuller(Puller):
    """Decodes nothing; bytes that are no records fail the pull, as ever."""

    def _found(self, body: bytes | memoryview, header: PullMessageAnswer, subscription: SubscriptionData) -> None:
        receiver = self._parts.answers
        assert receiver is not None, "a consumer that polls takes answers"
        answer = PulledAnswer(
            bytes(body),
            self._queue,
            header.min_offset,
            header.max_offset,
            header.next_begin_offset,
            header.offset_delta or 0,
            subscription.tags,
            self._restore,
        )
        receiver.received(self._process_queue, answer)
        self._nothing(header)
