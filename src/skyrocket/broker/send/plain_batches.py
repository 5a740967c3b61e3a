"""The common batch: it looks like one that was checked before, and is stored with all batches of its turn.

    batch ─▶ a KnownBatch is found for it ─▶ even, or cut ─┐
    batch ─▶ …                                             │ end of the turn, or before what is no plain batch
                                                           ▼
                                  one append of all batches ─▶ answers, which leave with the turn's write

A KnownBatch is for batches what a KnownSend is for single messages (`plain_send`). Whatever is not plain is left to the
long way of `send`, which also words the refusals: a queue that is not known yet, a body that the store must look at or
that is broken, properties that only single messages may have, or that the broker alone writes.
"""

import logging
from collections.abc import Sequence
from time import perf_counter  # how long work takes, whatever clock the program was given
from typing import Final, TypeAlias

from skyrocket.broker.send.plain_send import PlainSends, origin_of
from skyrocket.broker.send.send_answers import SendAnswers, Stored
from skyrocket.broker.state.topics import TopicTable
from skyrocket.errors import DataError
from skyrocket.format.batch import BatchColumns, EvenBatch, even_batch
from skyrocket.format.large_batch import columns_of
from skyrocket.format.properties import find_property
from skyrocket.model.topic import MAX_TOPIC_BYTES
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import FAQ, SystemFailure, TopicNotExist
from skyrocket.protocol.requests.messaging import SendMessage
from skyrocket.protocol.send_shapes import KnownText, ShapedSend, ShapeMemo
from skyrocket.remoting.answers import LaterAnswer
from skyrocket.remoting.peer import Peer
from skyrocket.store.batch_records import BatchOrigin, PlainBatch
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.message_store import MessageStore
from skyrocket.store.results import PutResult

_logger = logging.getLogger(__name__)

_MOST_BYTES: Final = 1 << 20  # that wait for the turn's end; what came is stored when there are more
_INNER: Final = b"INNER_"  # the beginning of names that are the broker's own
_KEY_NAME: Final = b"UNIQ_KEY\1"
_SEPARATOR: Final = 2  # the byte behind every property
_Kept: TypeAlias = tuple[LaterAnswer, bytes]  # who waits for the answer to a batch, and its unique key: 4.9 has none

_join = b"".join
_new_tuple = tuple.__new__  # builds a NamedTuple without its Python-level __new__


class KnownBatch(ShapeMemo):
    """What holds for all batches that look the same, as long as the topic table does not change."""

    __slots__ = ("generation", "key", "sys_flag", "text")

    def __init__(self, key: tuple[str, int], sys_flag: int, generation: int) -> None:
        self.key = key
        self.sys_flag = sys_flag
        self.generation = generation  # of the topic table for which this holds
        self.text: KnownText | None = None  # found to be plain, whatever its unique key


class PlainBatches:
    """The plain batches of the turn, which came after the single messages that came before them."""

    def __init__(self, store: MessageStore, topics: TopicTable, plain: PlainSends, answers: SendAnswers) -> None:
        self._intake = store.intake
        self._log = store.commit_log
        self._queues = store.queues
        self._topics = topics
        self._plain = plain
        self._answers = answers
        self._kept: list[_Kept] = []
        self._batches: list[PlainBatch] = []  # of the same
        self._bytes = 0
        self._kept_of = -1  # the generation of the topic table for which they hold
        self._removals = 0  # of queues, when the first of them came

    def keep(self, peer: Peer, request: ShapedSend) -> LaterAnswer | None:
        """Keep a batch that looks like one seen before; None when it needs a closer look."""
        known = request.shape.memo
        if known.__class__ is not KnownBatch or known.generation != self._topics.generation:
            return None
        queue = self._queues.by_key.get(known.key)
        answers, data = self._answers, request.body
        if queue is None or not queue.simple or not 0 < len(data) <= self._intake.max_plain_body:
            return None
        if request.known_text is not None and request.known_text is known.text:
            unique_key: bytes | None = request.value
        else:
            unique_key = self._look_at_text(known, request)
        if unique_key is None or (answers.wait and answers.is_short_of_copies()):
            return None
        if data.__class__ is not bytes:
            data = bytes(data)
        batch: EvenBatch | BatchColumns | None = even_batch(data)
        if batch is None or data.find(_INNER) >= 0:  # one look at all of them, instead of one each
            batch = _cut(data)
        if batch is None or (data[-1] == 0 and batch.last_properties.endswith(b"\0")):  # the store must look at them
            return None
        if not self._batches:
            answers.began = answers.began or perf_counter()
            self._plain.store()  # came before this one
            self._removals = self._queues.removals
        origin = _new_tuple(BatchOrigin, (known.sys_flag, int(request.born), origin_of(peer).born_host, 0))  # may raise
        later = LaterAnswer(request)
        self._kept.append((later, unique_key))
        self._batches.append(_new_tuple(PlainBatch, (queue, batch, origin)))
        self._kept_of = known.generation
        self._bytes += len(data)
        if self._bytes > _MOST_BYTES:
            self.store()
        return later

    def _look_at_text(self, known: KnownBatch, request: ShapedSend) -> bytes | None:
        """The unique key of the batch, empty if it has none; None when its properties are not plain."""
        text, shape = request.properties, request.shape
        find = text.find  # as in plain_send
        if (
            find(_INNER) >= 0  # some of them are the broker's own
            or find(b"DELAY") >= 0  # only single messages wait for their time
            or (self._answers.wait and find(b"WAIT\1false") >= 0)  # answered at once, unlike the others
        ):
            return None
        unique_key = find_property(text, b"UNIQ_KEY") or b""
        at = text.rfind(_KEY_NAME)
        value_at = at + len(_KEY_NAME)
        # Else the last one is empty, or the end of another name.
        is_last = (at <= 0 or text[at - 1] == _SEPARATOR) and text.startswith(unique_key, value_at)
        if unique_key and is_last and shape.texts_left > 0:
            known.text = shape.know_text(text, value_at, value_at + len(unique_key))
        return unique_key

    # ── storing ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def store(self) -> None:
        """Append the batches in the order of arrival, and answer."""
        if not self._batches:
            return
        batches, kept = self._batches, self._kept
        self._batches, self._kept, self._bytes = [], [], 0
        try:
            if self._kept_of == self._topics.generation and self._removals == self._queues.removals:
                self._append(batches, kept)
            else:
                for plain, one in zip(batches, kept, strict=True):
                    self._append_again(plain, one)
        except Exception as error:
            _logger.exception("batches could not be stored count=%d", len(batches))
            for later, _ in kept:
                if later.is_open:
                    later.refuse(SystemFailure(f"store putMessage failed: {error}"))

    def _append(self, batches: Sequence[PlainBatch], kept: Sequence[_Kept]) -> None:
        answers, log, waiting = self._answers, self._log, iter(kept)
        for outcome in self._intake.put_plain_batches(batches):
            if isinstance(outcome, PutResult):
                answers.refuse(next(waiting)[0], outcome.status)
                continue
            ids, size = answers.message_ids(outcome.starts), answers.id_size
            if not answers.wait and not log.is_behind:
                for (queue, first, at, end), (later, key) in zip(outcome.parts, waiting, strict=False):
                    answers.confirm_now(later, key.decode(), queue.queue_id, ids[at * size : end * size - 1], first)
                answers.latency.add(perf_counter() - answers.began, len(outcome.parts))  # once for all
                continue
            for part, (later, key) in zip(outcome.parts, waiting, strict=False):
                own_ids = ids[part.at * size : part.end * size - 1]
                stored = Stored(later, key.decode(), part.queue.queue_id, own_ids, part.first_queue_offset)
                answers.confirm_stored(stored, outcome.end_of(part), waits=answers.wait)

    def _append_again(self, plain: PlainBatch, kept: _Kept) -> None:
        """A topic or queue was changed or deleted in this very turn: the store finds the queue of a batch again."""
        (queue, batch, origin), (later, unique_key), answers = plain, kept, self._answers
        if queue.topic not in self._topics.topics:  # a message would make its queue anew
            gone = TopicNotExist(f"topic[{queue.topic}] not exist, apply first please!{FAQ}")
            gone.ext_fields = answers.refusal_fields
            later.refuse(gone)
            return
        sys_flag, born, host, _ = origin
        message = PutMessage(queue.topic, queue.queue_id, b"", b"", 0, sys_flag, born, host)
        result = self._intake.put_batch(message, batch.elements())
        if not result.ok:
            answers.refuse(later, result.status)
            return
        ids = answers.message_ids(result.physical_offsets)[:-1]
        stored = Stored(later, unique_key.decode(), queue.queue_id, ids, result.first_queue_offset)
        answers.confirm_stored(stored, result.end_offset, waits=answers.wait)

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
        batch = columns_of(data)
    except DataError:
        return None
    # One look at all of them, instead of one each.
    return batch if _join(batch.properties).find(b"INNER_") < 0 else None
