"""Gives the open halves of a set without master to other masters, who ask the producers.

A slave that acts as master can neither end a transaction nor count checks: its log is its master's. So each half that
has not ended is sent again as its producer sent it, and passed when another master has it. RocketMQ passes one over
that it could not send three times; here it waits.
"""

import asyncio
import logging
from typing import Final

from skyrocket.broker.rules.special_services import OtherBrokers, SpecialServices
from skyrocket.broker.transactions.half_message import HalfMessage
from skyrocket.broker.transactions.transaction_log import TransactionLog

_logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 0.1
RETRY_SECONDS: Final = 1.0  # after nobody has taken a half
GROUP_HALVES: Final = 32


class HalfEscape:
    """The transaction service of a slave that acts as master."""

    def __init__(self, log: TransactionLog, special: SpecialServices) -> None:
        self._log = log
        self._special = special
        self._sent_ahead: set[int] = set()  # behind one that nobody has taken

    async def run(self) -> None:
        """Send halves whenever this broker acts as master, until cancelled."""
        while True:
            others = await self._special.begin()
            with self._special.at_work():
                self._log.take_up()
                self._sent_ahead.clear()
                while self._special.acts:
                    if self._log.half_offset >= self._log.half_end:
                        await asyncio.sleep(LOOK_SECONDS)
                    elif not await self.send_group(others):
                        await asyncio.sleep(RETRY_SECONDS)

    async def send_group(self, others: OtherBrokers) -> int:
        """Send the next halves that are open; how many were passed."""
        begin = self._log.half_offset
        end = min(begin + GROUP_HALVES, self._log.half_end)
        halves = {offset: half for offset in range(begin, end) if (half := self._open_half(offset)) is not None}
        results = await others.put_group([half.sent_again() for half in halves.values()]) if halves else ()
        self._sent_ahead.update(offset for offset, result in zip(halves, results, strict=True) if result.ok)
        left = [offset for offset in halves if offset not in self._sent_ahead]
        if left:
            end = left[0]
            _logger.warning("a half message was taken by no other master, it waits offset=%d", end)
        self._log.pass_to(end)
        self._log.round_is_over(is_elsewhere=True)
        self._sent_ahead = {offset for offset in self._sent_ahead if offset >= end}
        return end - begin

    def _open_half(self, offset: int) -> HalfMessage | None:
        """The half at an offset, if it has not ended and was not sent."""
        log = self._log
        if offset in self._sent_ahead or log.is_ended(offset):
            return None
        half = log.half_at(offset)
        if half is None or not log.is_open(half) or log.is_delivered(half):
            return None
        return half
