"""In order, delayed, in a transaction: a message is of one kind, and the client says so before anything is sent."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from skyrocket.client.core.message import Message
from skyrocket.client.producer.producer import Producer
from skyrocket.client.producer.transaction import TransactionProducer, TransactionState
from skyrocket.errors import MessageRefused
from tests.cluster.servers import cluster

ORDERED_AND_LATER = [
    Message("Orders", b"x", sharding_key="k", delay_level=3),
    Message("Orders", b"x", sharding_key="k", delay=5),
    Message("Orders", b"x", sharding_key="k", deliver_at=datetime(2100, 1, 1, tzinfo=UTC)),
]
NOT_IN_TRANSACTIONS = [
    (Message("Orders", b"x", delay=5), "cannot be delayed"),
    (Message("Orders", b"x", delay_level=3), "cannot be delayed"),
    (Message("Orders", b"x", sharding_key="k"), "cannot have a sharding key"),
]


@pytest.mark.requirement("C016")
async def test_a_message_is_ordered_or_delayed_or_transactional(tmp_path: Path) -> None:
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        for message in ORDERED_AND_LATER:
            with pytest.raises(MessageRefused, match="a message with a sharding key cannot be delayed"):
                await producer.send(message)
        transacting = TransactionProducer("Sellers", given.names)
        transacting.checker(lambda _: TransactionState.COMMIT)
        async with transacting:
            for message, reason in NOT_IN_TRANSACTIONS:
                with pytest.raises(MessageRefused, match=reason):
                    async with transacting.transaction(message):
                        raise AssertionError("the local transaction must not begin")
        broker = given.brokers["broker-a"]
        assert broker.store.commit_log.written_offset == 0
