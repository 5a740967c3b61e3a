"""Looking for messages by key, by unique key and by id."""

from typing import Final

from skyrocket.protocol.codes import RequestCode, ResponseCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import QueryNotFound, SystemFailure
from skyrocket.protocol.requests.query import QueryMessage, QueryMessageAnswer, ViewMessageById
from skyrocket.remoting.admission import RequestClass
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.router import Router
from skyrocket.store.message_store import MessageStore

_TAG: Final = "T"
_UNIQUE: Final = "U"


class QueryProcessor:
    """Answers with records as they are in the log."""

    def __init__(self, store: MessageStore, default_max_count: int) -> None:
        self._store = store
        self._default_max_count = default_max_count

    def register(self, router: Router, request_class: RequestClass) -> None:
        """Answer these requests."""
        router.register(RequestCode.QUERY_MESSAGE, self.query, request_class)
        router.register(RequestCode.VIEW_MESSAGE_BY_ID, self.view, request_class)

    def query(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """QUERY_MESSAGE."""
        header = QueryMessage.from_fields(request.ext_fields)
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
        return request.answer(ResponseCode.SUCCESS, None, answer.to_fields(), b"".join(records))

    def view(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """VIEW_MESSAGE_BY_ID."""
        header = ViewMessageById.from_fields(request.ext_fields)
        record = self._store.by_physical_offset(header.offset)
        if record is None:
            raise SystemFailure(f"can not find message by the offset, {header.offset}")
        # A copy, made here: it may have to come from the disk, and this is not the event loop's thread.
        return request.answer(ResponseCode.SUCCESS, None, None, bytes(record))
