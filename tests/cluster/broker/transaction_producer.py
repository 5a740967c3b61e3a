"""A producer of transactions on a real socket: sends halves, ends them, and answers when it is asked."""

import asyncio
from collections.abc import Mapping
from typing import Final, Self

from skyrocket.format.message_id import parse_offset_message_id
from skyrocket.format.record import decode_record
from skyrocket.protocol.bodies.heartbeat import Heartbeat, ProducerData
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.requests.clients import HeartBeat
from skyrocket.protocol.requests.messaging import SendMessageAnswer, SendMessageV2
from skyrocket.protocol.requests.server_to_client import CheckTransactionState
from skyrocket.protocol.requests.transaction import UNKNOWN, EndTransaction
from skyrocket.remoting.answers import Outcome
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.router import Router

GROUP: Final = "Sellers"
TOPIC: Final = "Orders"


class TransactionProducer:
    """`words` says what became of a transaction, by body; what is not there is unknown."""

    def __init__(self, address: str, words: Mapping[bytes, int], client_id: str = "one", group: str = GROUP) -> None:
        self.asked: list[bytes] = []
        self.words = words
        self.address = address
        self.group = group
        self._client_id = client_id
        router = Router()
        router.register(RequestCode.CHECK_TRANSACTION_STATE, self._answer)
        self.client = RemotingClient(router=router)

    async def __aenter__(self) -> Self:
        await self.client.__aenter__()
        body = Heartbeat(self._client_id, (ProducerData(self.group),), ()).encode()
        await self.client.call(self.address, HeartBeat(), body)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.close()

    def _answer(self, peer: Peer, request: RemotingCommand) -> Outcome:
        header = CheckTransactionState.from_fields(request.ext_fields)
        message = decode_record(memoryview(bytes(request.body)), check_crc=True)
        assert message.properties["PGROUP"] == self.group
        self.asked.append(message.body)
        peer.send_oneway(
            EndTransaction(
                topic=header.topic,
                producer_group=self.group,
                tran_state_table_offset=header.tran_state_table_offset,
                commit_log_offset=header.commit_log_offset,
                commit_or_rollback=self.words.get(message.body, UNKNOWN),
                from_transaction_check=True,
                msg_id=header.msg_id,
                transaction_id=header.transaction_id,
                broker_name=header.broker_name,
            )
        )
        return None

    async def begin(self, body: bytes, born_ms: int, **properties: str) -> SendMessageAnswer:
        """Send a half message."""
        given = {"TRAN_MSG": "true", "PGROUP": self.group, "UNIQ_KEY": f"U-{body.decode()}", **properties}
        request = SendMessageV2(
            producer_group=self.group,
            topic=TOPIC,
            default_topic="TBW102",
            default_topic_queue_nums=4,
            queue_id=0,
            sys_flag=4,
            born_timestamp=born_ms,
            flag=0,
            properties="".join(f"{name}\x01{value}\x02" for name, value in given.items()),
            reconsume_times=0,
        )
        return (await self.client.call(self.address, request, body)).header

    def end_request(self, half: SendMessageAnswer, word: int) -> EndTransaction:
        return EndTransaction(
            topic=TOPIC,
            producer_group=self.group,
            tran_state_table_offset=half.queue_offset,
            commit_log_offset=parse_offset_message_id(half.msg_id).physical_offset,
            commit_or_rollback=word,
            msg_id=half.transaction_id,
            transaction_id=half.transaction_id,
        )

    async def end(self, half: SendMessageAnswer, word: int) -> None:
        """Two-way, as the Go client does; raises what it is answered."""
        await self.client.call(self.address, self.end_request(half, word))

    async def end_oneway(self, half: SendMessageAnswer, word: int) -> None:
        """As the Java client does."""
        await self.client.call_oneway(self.address, self.end_request(half, word))


async def settled(seconds: float = 0.05) -> None:
    """Let a oneway request arrive."""
    await asyncio.sleep(seconds)
