"""Put messages into a store, read them back by queue, key and time. Run: python examples/store_messages.py"""

import logging
import tempfile
import time

from skyrocket.config.sections import StoreConfig
from skyrocket.format.properties import encode_properties
from skyrocket.format.record import decode_records
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.message_store import MessageStore

log = logging.getLogger("example")


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    config = StoreConfig(commit_log_file_size=1 << 20)
    with tempfile.TemporaryDirectory() as directory, MessageStore(directory, config) as store:
        before = int(time.time() * 1000)
        for number in range(5):
            properties = encode_properties({"KEYS": f"order-{number}", "TAGS": "paid"})
            message = PutMessage("orders", queue_id=0, body=f"order {number}".encode(), properties=properties)
            result = store.put(message)
            log.info("stored queue_offset=%d status=%s", result.queue_offset, result.status.name)
        store.flush()  # a broker is told by `store.flusher.when_flushed` instead, and goes on meanwhile
        log.info("on disk up to physical offset %d", store.commit_log.flushed_offset)
        store.dispatch()
        for stored in decode_records(store.get("orders", 0, offset=2).join()):
            log.info("read offset=%d body=%s", stored.queue_offset, stored.body.decode())
        found = store.query("orders", "order-3")
        log.info("by key: %s", [stored.body.decode() for view in found for stored in decode_records(view)])
        log.info("first offset since the start: %d", store.offset_by_time("orders", 0, before))


if __name__ == "__main__":
    main()
