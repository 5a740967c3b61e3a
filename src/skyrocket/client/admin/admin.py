"""Admin: topics, groups, offsets, queries, routes, connections.

    async with Admin("127.0.0.1:9876") as admin:
        await admin.create_topic("Orders", queues=8)

Each call asks name servers and brokers anew; nothing is remembered. Changes go to every master of a cluster.
"""

import re
from datetime import datetime
from typing import Final

from skyrocket.client.admin.admin_calls import moment_ms
from skyrocket.client.admin.dead_letters import DeadLetterFilter, DeadLetters
from skyrocket.client.admin.group_admin import GroupAdmin
from skyrocket.client.admin.message_admin import MessageAdmin
from skyrocket.client.admin.waiting_messages import OpenTransaction, PendingTimer, WaitingMessages
from skyrocket.client.core.message import ReceivedMessage
from skyrocket.client.core.names import wrap
from skyrocket.client.core.send_receipt import SendReceipt, topic_and_broker

_MESSAGE_ID: Final = re.compile("[0-9A-Fa-f]{32,64}")
ALL_DEAD_LETTERS: Final = DeadLetterFilter()


class Admin(GroupAdmin, MessageAdmin):
    """Operations on a cluster."""

    # ── dead letters ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def dead_letters(
        self, group: str, wanted: DeadLetterFilter = ALL_DEAD_LETTERS, *, most: int = 1000
    ) -> list[ReceivedMessage]:
        """What a group has given up, oldest first; `cause_of` tells why. Raises WrongUse for an unknown group."""
        return await DeadLetters(self._instance_of(), wrap(self._namespace, group), self._timeout).read(wanted, most)

    async def resend_dead_letters(
        self,
        group: str,
        wanted: DeadLetterFilter = ALL_DEAD_LETTERS,
        *,
        most: int = 1000,
        to_topic: bool = False,
    ) -> list[SendReceipt]:
        """Let the group have dead letters again, with all attempts before them; `to_topic`: let all groups.

        They stay among the dead letters: a second call sends them a second time.
        """
        letters = DeadLetters(self._instance_of(), wrap(self._namespace, group), self._timeout)
        return await letters.resend(await letters.read(wanted, most), to_topic=to_topic)

    # ── messages that wait ───────────────────────────────────────────────────────────────────────────────────────────

    async def open_transactions(
        self,
        topic: str | None = None,
        *,
        producer_group: str | None = None,
        transaction_id: str | None = None,
        cluster: str | None = None,
        most: int = 1000,
    ) -> list[OpenTransaction]:
        """Transactions that wait for their end, oldest first; raises NotOffered at brokers of Apache RocketMQ."""
        waiting = await self._waiting(cluster)
        return await waiting.open_transactions(topic, producer_group, transaction_id, most)

    async def end_transaction(self, transaction: OpenTransaction, *, commit: bool) -> None:
        """An operator's word in place of the producer's; raises BrokerRefused when it has ended meanwhile."""
        await (await self._waiting(None)).end_transaction(transaction, commit=commit)

    async def pending_timers(
        self,
        topic: str | None = None,
        *,
        due_from: datetime | float = 0.0,
        cluster: str | None = None,
        most: int = 1000,
    ) -> list[PendingTimer]:
        """Messages that wait for their time, soonest first; raises NotOffered at brokers of Apache RocketMQ."""
        return await (await self._waiting(cluster)).pending_timers(topic, moment_ms(due_from), most)

    async def timer_counts(self, *, cluster: str | None = None) -> dict[str, int]:
        """How many messages of each topic wait for their time."""
        return await (await self._waiting(cluster)).timer_counts()

    async def recall(self, timer: PendingTimer | str) -> str:
        """Take back a message that waits, given by its message id or its recall handle; returns the message id.

        Raises ClientError when none waits or the broker takes nothing back (recallMessageEnable), BrokerRefused when it
        is too late.
        """
        waiting = await self._waiting(None)
        if isinstance(timer, str) and not _MESSAGE_ID.fullmatch(timer):
            topic, broker_name = topic_and_broker(timer)
            return await waiting.recall_by_handle(topic, broker_name, timer)
        found = await waiting.find_timer(timer) if isinstance(timer, str) else timer
        await waiting.recall(found)
        return found.message_id

    async def _waiting(self, cluster: str | None) -> WaitingMessages:
        return WaitingMessages(self._instance_of(), await self._named_masters(cluster), self._timeout)
