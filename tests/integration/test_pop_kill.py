"""Messages that a consumer had in hand when the broker was killed."""

import re
from pathlib import Path
from typing import Any

from skyrocket.protocol.requests.pop import (
    PopMessage,
    PopMessageAnswer,
)
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.exchange import Reply
from tests.cluster.broker.broker_fixture import GROUP, TOPIC, message
from tests.integration.program import Standalone
from tests.unit.broker.pop.pop_world import Popped, popped_messages
from tests.waiting import until

POP_CODES = frozenset({0, 209, 210})


def messages(reply: Reply[PopMessageAnswer]) -> list[Popped]:
    return popped_messages(bytes(reply.body), reply.header)


async def test_what_was_in_hand_comes_again_after_kill_9(tmp_path: Path) -> None:
    async def call(broker: str, request: Any, body: bytes = b"") -> Any:
        async with RemotingClient() as client:
            return await client.call(broker, request, body, accepted=POP_CODES, timeout_seconds=25)

    def request(**changes: Any) -> PopMessage:
        times = {"invisible_time": 3000, "poll_time": 0, "init_mode": 0}
        fields: dict[str, Any] = {"consumer_group": GROUP, "topic": TOPIC, "queue_id": -1, "max_msg_nums": 32}
        return PopMessage(**(fields | times | changes))

    with Standalone(tmp_path, "flushConsumerOffsetInterval=50") as program:
        for body in (b"one", b"two"):
            await call(program.broker, message(), body)
        one, _ = messages(await call(program.broker, request()))
        await call(program.broker, one.acknowledgement())
        saved = tmp_path / "store" / "config" / "consumerOffset.json"
        # What was popped after a save may come twice.
        await until(lambda: saved.exists() and "0:2" in re.sub(r"[\s\"]", "", saved.read_text()))
        program.kill()
    with Standalone(tmp_path) as program:
        again = messages(await call(program.broker, request(poll_time=20_000)))
        assert [each.body for each in again] == [b"two"]
        assert again[0].message.reconsume_times == 1


# What must stand in a field, whatever the numbers are.
