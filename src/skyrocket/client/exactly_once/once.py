"""Once: the handler's work and the message's key are committed together, or neither is.

    once = Once(lambda: sqlite3.connect("shop.db"))
    once.create_table()

    @consumer.on("Orders", once=once)
    def paid(message, connection):
        connection.execute("UPDATE account SET balance = balance - 10 WHERE …")

What happens to a message, and what a crash leaves behind:

    1. the key is in memory            done before: consumed, nothing is called
    2. the key is in the database      the same
    3. the key is inserted             a second one with the same key waits here until the first has ended
    4. the handler runs                a crash, or an exception: rolled back, the message comes again and is new
    5. commit                          a crash: the database knows whether it happened; step 2 asks it
    6. the key is kept in memory       a crash: the message comes again, and step 2 finds it
"""

import inspect
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

from skyrocket.client.consumer.handlers import ConsumeStatus, current_group
from skyrocket.client.core.errors import WrongUse
from skyrocket.client.core.message import ReceivedMessage
from skyrocket.client.exactly_once.business_key import LONGEST_KEY, KeyRule, by_keys, key_of
from skyrocket.client.exactly_once.databases import Source, Statements, checked_table, is_unique_violation, transaction
from skyrocket.clock import Clock, SystemClock

_logger = logging.getLogger(__name__)

_CONSUMED: Final = (None, ConsumeStatus.CONSUME_SUCCESS, ConsumeStatus.SUCCESS)


class HandlerCommitted(WrongUse):
    """The handler ended the transaction itself: what it did afterwards is not tied to the key."""


class _DoneBefore(Exception):
    """Leave the transaction: somebody else was first."""


class _NotConsumed(Exception):
    """Leave the transaction: the handler returned a status that asks for the message again."""

    def __init__(self, result: Any) -> None:
        self.result = result


class RecentKeys:
    """The last keys that were done: most repetitions come soon after the first. For all threads.

    At most `most` keys; those that were not asked for longest go first.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._keys: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: tuple[str, str]) -> bool:
        with self._lock:
            if key not in self._keys:
                return False
            self._keys.move_to_end(key)
            return True

    def add(self, key: tuple[str, str]) -> None:
        with self._lock:
            self._keys[key] = None
            self._keys.move_to_end(key)
            while len(self._keys) > self._most:
                self._keys.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._keys.clear()


class Once:
    """Calls handlers once per key and scope; the scope is the consumer group unless another is given.

    `called` counts handlers whose work was committed here, `repeated` messages that were done before.
    """

    def __init__(
        self,
        database: Source,
        key: KeyRule = by_keys,
        *,
        scope: str | None = None,
        table: str = "skyrocket_done",
        cache_size: int = 10_000,
        clock: Clock | None = None,
    ) -> None:
        if cache_size < 0:
            raise WrongUse(f"cache_size={cache_size} is negative: 0 means no cache")
        self._database = database
        self._key = key
        self._scope = scope
        self._table = checked_table(table)
        self._recent = RecentKeys(cache_size)
        self._clock = clock or SystemClock()
        self._counting = threading.Lock()
        self.called = 0
        self.repeated = 0

    def create_table(self) -> None:
        """Make the table of keys if there is none."""
        with transaction(self._database) as statements:
            statements.execute(
                f"CREATE TABLE IF NOT EXISTS {self._table} (scope VARCHAR(255) NOT NULL, "
                f"message_key VARCHAR({LONGEST_KEY}) NOT NULL, done_at_ms BIGINT NOT NULL, "
                "PRIMARY KEY (scope, message_key))",
                {},
            )

    def forget(self, older_than: timedelta) -> int:
        """Remove keys that were done long ago, longer than any message can still come again; returns how many."""
        before = self._clock.now_ms() - round(older_than.total_seconds() * 1000)
        with transaction(self._database) as statements:
            removed = statements.execute(f"DELETE FROM {self._table} WHERE done_at_ms < :before", {"before": before})
        self._recent.clear()  # a key that is gone must not be remembered longer here than elsewhere
        return removed

    def wrap(self, handler: Callable[[ReceivedMessage, Any], Any]) -> Callable[[ReceivedMessage], Any]:
        """The handler as consumers call it: with the message alone."""
        if inspect.iscoroutinefunction(handler):
            raise WrongUse(
                f"{handler!r} is async, but a database transaction blocks its thread: "
                "give a plain function, it is called in a thread"
            )

        def handle(message: ReceivedMessage) -> Any:
            return self.run(message, handler)

        return handle

    def run(self, message: ReceivedMessage, handler: Callable[[ReceivedMessage, Any], Any]) -> Any:
        """Call the handler unless its work is done; returns what it returns, None when it was not called."""
        scope = self._scope if self._scope is not None else current_group.get("")
        key = (scope, key_of(message, self._key))
        if key in self._recent:
            return self._was_done(message, "memory")
        try:
            with transaction(self._database) as statements:
                self._claim(statements, key)
                result = handler(message, statements.handle)
                if result not in _CONSUMED:
                    raise _NotConsumed(result)
                if not statements.is_open():
                    raise HandlerCommitted(
                        f"the handler ended the transaction of {message!r}: leave commit and rollback to Once"
                    )
        except _NotConsumed as asked:
            return asked.result
        except _DoneBefore:
            self._recent.add(key)
            return self._was_done(message, "database")
        self._recent.add(key)
        with self._counting:
            self.called += 1
        return result

    def _claim(self, statements: Statements, key: tuple[str, str]) -> None:
        """Write the key; raises _DoneBefore when it is there."""
        values = {"scope": key[0], "message_key": key[1]}
        found = statements.rows(
            f"SELECT 1 FROM {self._table} WHERE scope = :scope AND message_key = :message_key", values
        )
        if found:
            raise _DoneBefore
        try:
            statements.execute(
                f"INSERT INTO {self._table} (scope, message_key, done_at_ms) VALUES (:scope, :message_key, :now_ms)",
                {**values, "now_ms": self._clock.now_ms()},
            )
        except Exception as error:
            if is_unique_violation(error):  # somebody else did it between the look and the insertion
                raise _DoneBefore from error
            raise

    def _was_done(self, message: ReceivedMessage, where: str) -> None:
        with self._counting:
            self.repeated += 1
        _logger.debug("a message was done before message=%s known_by=%s", message.message_id, where)
