"""Looking for messages by key, by unique key and by id."""

from typing import Final

from skyrocket.protocol.command import Body
from skyrocket.protocol.errors import QueryNotFound, SystemFailure
from skyrocket.protocol.requests.query import QueryMessage, QueryMessageAnswer, ViewMessageById
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import Answered, Handlers, serve
from skyrocket.store.message_store import MessageStore

_TAG: Final = "T"
_UNIQUE: Final = "U"


class QueryProcessor:
    """Answers with records as they are in the log."""

    def __init__(self, store: MessageStore, default_max_count: int) -> None:
        self._store = store
        self._default_max_count = default_max_count

    def handlers(self) -> Handlers:
        return (
            serve(QueryMessage, self.query, in_thread=True),
            serve(ViewMessageById, self.view, in_thread=True),
        )

    def query(self, _: Peer, header: QueryMessage, __: Body) -> Answered:
        """Messages with a key, or with a unique key."""
        unique = header.unique_key_query is True or header.index_type == _UNIQUE
        # RocketMQ: how many a search for a unique key may find is the broker's to say.
        most = self._default_max_count if unique else header.max_num
        # Not `store.query`, which dispatches first: this runs in a thread, and listeners belong to the event loop.
        records = self._store.reader.query(
            header.topic,
            header.key or "",
            most,
            header.begin_timestamp,
            header.end_timestamp,
            tag=header.index_type == _TAG,
        )
        if not records:
            nothing = QueryMessageAnswer(index_last_update_timestamp=0, index_last_update_phyoffset=0)
            raise QueryNotFound("can not find message, maybe time range not correct", nothing.to_fields())
        index = self._store.index
        answer = QueryMessageAnswer(
            index_last_update_timestamp=index.end_timestamp if index is not None else 0,
            index_last_update_phyoffset=index.end_physical_offset if index is not None else 0,
        )
        return Answered(answer, b"".join(records))

    def view(self, _: Peer, header: ViewMessageById, __: Body) -> bytes:
        """The message at a physical offset."""
        record = self._store.by_physical_offset(header.offset)
        if record is None:
            raise SystemFailure(f"can not find message by the offset, {header.offset}")
        # A copy, made here: it may have to come from the disk, and this is not the event loop's thread.
        return bytes(record)
