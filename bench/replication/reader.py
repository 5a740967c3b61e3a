"""A consumer of old messages that goes where brokers send it: `python -m bench.replication.reader MASTER SLAVE TOPIC`.

It says `ready` after its first answer, reads until its input ends, and then says how many messages each broker gave.
"""

import asyncio
import json
import sys

from skyrocket.format.record import decode_records
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.requests.pulling import PullMessage
from skyrocket.remoting.client import RemotingClient

QUEUES = 8
_CODES = frozenset({0, 19, 20, 21})


class Reader:
    """Pulls one queue after the other, from the beginning to where messages are young, and again."""

    def __init__(self, brokers: tuple[str, str], topic: str) -> None:
        self._brokers = brokers
        self._topic = topic
        self.given = [0, 0]  # messages, by the broker's id

    async def read_on(self, client: RemotingClient) -> None:
        offsets, asked = [0] * QUEUES, [0] * QUEUES
        while True:
            for queue_id in range(QUEUES):
                broker_id = asked[queue_id]
                request = self._pull(queue_id, offsets[queue_id])
                reply = await client.call(self._brokers[broker_id], request, accepted=_CODES, timeout_seconds=20)
                header = reply.header
                if reply.code == ResponseCode.SUCCESS:
                    self.given[broker_id] += sum(1 for _ in decode_records(reply.body))
                    offsets[queue_id] = header.next_begin_offset
                is_young = reply.code != ResponseCode.SUCCESS or (broker_id and not header.suggest_which_broker_id)
                if is_young:
                    offsets[queue_id] = 0
                asked[queue_id] = int(header.suggest_which_broker_id == 1)

    def _pull(self, queue_id: int, offset: int) -> PullMessage:
        return PullMessage(
            consumer_group="BacklogReaders",
            topic=self._topic,
            queue_id=queue_id,
            queue_offset=offset,
            max_msg_nums=32,
            sys_flag=0x4,
            commit_offset=0,
            suspend_timeout_millis=0,
            subscription="*",
            expression_type="TAG",
        )


async def main(master: str, slave: str, topic: str) -> None:
    reader = Reader((master, slave), topic)
    async with RemotingClient() as client:
        reading = asyncio.create_task(reader.read_on(client))
        while not sum(reader.given) and not reading.done():
            await asyncio.sleep(0.01)
        print("ready", flush=True)
        ended = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        await asyncio.wait({reading, ended}, return_when=asyncio.FIRST_COMPLETED)
        if reading.done():
            reading.result()
        reading.cancel()
    print(json.dumps({"given": reader.given}), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
