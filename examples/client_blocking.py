"""The same without an event loop. Run: python examples/client_blocking.py"""

import logging
import threading

from local_server import name_server

from skyrocket.client import Message, ReceivedMessage, blocking

log = logging.getLogger("example")


def main(names: str) -> None:
    done = threading.Event()
    with blocking.Producer("Shop", names) as producer:
        log.info("offset %d", producer.send(Message("Orders", b"hello")).queue_offset)
        consumer = blocking.PushConsumer("Billing", names)

        @consumer.on("Orders")
        def order(message: ReceivedMessage) -> None:
            log.info("consumed: %s", message.body.decode())
            done.set()

        with consumer:
            assert done.wait(30)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    with name_server() as address:
        main(address)
