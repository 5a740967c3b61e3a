"""The common batch: it looks like one that was checked before, and becomes records without a look at each message.

A KnownBatch is for batches what a KnownSend is for single messages (`plain_send`). Whatever is not plain is left to the
long way of `send`, which also words the refusals: a queue that is not known yet, a body that the store must look at or
that is broken, properties that only single messages may have, or that the broker alone writes.
"""

from time import perf_counter  # how long work takes, whatever clock the program was given

from skyrocket.broker.send.plain_send import PlainSends, origin_of
from skyrocket.broker.send.send_answers import SendAnswers, Stored
from skyrocket.broker.state.topics import TopicTable
from skyrocket.errors import DataError
from skyrocket.format.batch import BatchColumns, cut_batch
from skyrocket.format.properties import find_property
from skyrocket.model.topic import MAX_TOPIC_BYTES
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.requests.messaging import SendMessage
from skyrocket.protocol.send_shapes import ShapedSend, ShapeMemo
from skyrocket.remoting.answers import LaterAnswer
from skyrocket.remoting.peer import Peer
from skyrocket.store.batch_records import BatchOrigin
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.message_store import MessageStore
from skyrocket.store.record_run import RecordRun

_join = b"".join


class KnownBatch(ShapeMemo):
    """What holds for all batches that look the same, as long as the topic table does not change."""

    __slots__ = ("generation", "key", "sys_flag")

    def __init__(self, key: tuple[str, int], sys_flag: int, generation: int) -> None:
        self.key = key
        self.sys_flag = sys_flag
        self.generation = generation  # of the topic table for which this holds


class PlainBatches:
    """Batches that are stored when they come, after the single messages that came before them."""

    def __init__(self, store: MessageStore, topics: TopicTable, plain: PlainSends, answers: SendAnswers) -> None:
        self._intake = store.intake
        self._queues = store.queues
        self._topics = topics
        self._plain = plain
        self._answers = answers
        self._id_form = f"{answers.id_prefix}%016X,"

    def put(self, peer: Peer, request: ShapedSend) -> LaterAnswer | None:
        """Store a batch that looks like one seen before; None when it needs a closer look."""
        known = request.shape.memo
        if known.__class__ is not KnownBatch or known.generation != self._topics.generation:
            return None
        queue = self._queues.by_key.get(known.key)
        answers, text, data = self._answers, request.properties, request.body
        find = text.find  # as in plain_send
        if (
            queue is None
            or not queue.simple
            or not 0 < len(data) <= self._intake.max_plain_body
            or data[-1] == 0  # the store must look at the last properties
            or find(b"INNER_") >= 0  # some of them are the broker's own
            or find(b"DELAY") >= 0  # only single messages wait for their time
            or (answers.wait and (find(b"WAIT\1false") >= 0 or answers.is_short_of_copies()))
        ):
            return None
        batch = _cut(data if isinstance(data, bytes) else bytes(data))
        if batch is None:
            return None
        answers.began = answers.began or perf_counter()
        self._plain.store()  # came before this one
        origin = BatchOrigin(known.sys_flag, int(request.born), origin_of(peer).born_host)
        run = self._intake.put_cut_batch(queue, batch, origin)
        later = LaterAnswer(request)
        if not isinstance(run, RecordRun):
            answers.refuse(later, run.status)
            return later
        ids = (self._id_form * run.count % tuple(run.starts))[:-1]  # half the cost of one after the other
        unique_key = (find_property(text, b"UNIQ_KEY") or b"").decode()  # that of the batch; 4.9 has none
        stored = Stored(later, unique_key, queue.queue_id, ids, run.first_queue_offset)
        answers.confirm_stored(stored, run.end_offset, waits=answers.wait)
        return later

    def learn(self, request: RemotingCommand, header: SendMessage, message: PutMessage) -> None:
        """Let those that look like this batch be plain, if all that is special about it shows in its look."""
        if (
            header.batch
            and isinstance(request, ShapedSend)
            and len(header.topic) <= MAX_TOPIC_BYTES
            and not self._topics.topics[header.topic].has_batch_queues  # they are kept whole
            and self._plain.shows_all(header, message)
        ):
            key = (message.topic, message.queue_id)
            request.shape.memo = KnownBatch(key, message.sys_flag, self._topics.generation)


def _cut(data: bytes) -> BatchColumns | None:
    """The parts of a batch; None when it is broken, or when some of its properties must be looked at."""
    try:
        batch = cut_batch(data)
    except DataError:
        return None
    # One look at all of them, instead of one each.
    return batch if _join(batch.properties).find(b"INNER_") < 0 else None
