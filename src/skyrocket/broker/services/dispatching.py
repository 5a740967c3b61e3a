"""Brings queues up to date after puts, in the event loop: answers leave first, then pulls that wait are woken."""

import asyncio
import logging

from skyrocket.errors import StoreError
from skyrocket.store.message_store import MessageStore

_logger = logging.getLogger(__name__)


class Dispatching:
    """Runs the store's dispatch once for any number of requests."""

    def __init__(self, store: MessageStore) -> None:
        self._store = store
        self._is_scheduled = False

    def request(self) -> None:
        """Dispatch as soon as the turn is over."""
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._dispatch)

    def _dispatch(self) -> None:
        self._is_scheduled = False
        try:
            self._store.dispatch()
        except StoreError:
            _logger.exception("dispatch failed, no more messages are taken path=%s", self._store.paths.root)
