"""A consumer of old messages that goes where brokers send it: `python -m bench.replication.reader MASTER SLAVE TOPIC`.

It says `ready` when each queue was asked for once and it has gone where it was sent, reads until its input ends, and
then says how many pulls it made and how many bytes it got since, from master and slave.
"""

import asyncio
import json
import sys
import time

from tests.pulls import pull_at

from skyrocket.format.record import decode_records
from skyrocket.protocol.codes import ResponseCode
from skyrocket.remoting.client import RemotingClient

QUEUES = 8
_CODES = frozenset({0, 19, 20, 21})


class Reader:
    """Pulls one queue after the other, from the beginning to where messages are young, and again."""

    def __init__(self, brokers: tuple[str, str], topic: str) -> None:
        self._brokers = brokers
        self._topic = topic
        self._begun_at = time.monotonic()
        self.pulls = [0, 0]  # by the broker's id
        self.read_bytes = [0, 0]

    async def read_on(self, client: RemotingClient, moved: asyncio.Event) -> None:
        offsets, asked = [0] * QUEUES, [0] * QUEUES
        while True:
            for queue_id in range(QUEUES):
                broker_id = asked[queue_id]
                request = pull_at("BacklogReaders", self._topic, queue_id, offsets[queue_id])
                reply = await client.call(self._brokers[broker_id], request, accepted=_CODES, timeout_seconds=20)
                self.pulls[broker_id] += 1
                header = reply.header
                if reply.code == ResponseCode.SUCCESS:
                    self.read_bytes[broker_id] += sum(record.record_size for record in decode_records(reply.body))
                    offsets[queue_id] = header.next_begin_offset
                is_young = reply.code != ResponseCode.SUCCESS or (broker_id and not header.suggest_which_broker_id)
                if is_young:
                    offsets[queue_id] = 0  # the backlog has no end here: who read all of it would go to the master
                else:
                    asked[queue_id] = int(header.suggest_which_broker_id == 1)
            if not moved.is_set():
                self.pulls, self.read_bytes, self._begun_at = [0, 0], [0, 0], time.monotonic()
                moved.set()

    def said(self) -> dict[str, object]:
        seconds = time.monotonic() - self._begun_at
        return {"pulls": self.pulls, "bytes": self.read_bytes, "seconds": seconds}


async def main(master: str, slave: str, topic: str) -> None:
    reader, moved = Reader((master, slave), topic), asyncio.Event()
    async with RemotingClient() as client:
        reading = asyncio.create_task(reader.read_on(client, moved))
        ended = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        waiting = asyncio.create_task(moved.wait())
        await asyncio.wait({reading, waiting, ended}, return_when=asyncio.FIRST_COMPLETED)
        print("ready" if moved.is_set() else "failed", flush=True)
        await asyncio.wait({reading, ended}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if reading.done():
            reading.result()
        reading.cancel()
    print(json.dumps(reader.said()), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
