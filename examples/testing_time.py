"""Hours of delays and retries in a second, with a cluster inside the program. Run: python examples/testing_time.py"""

import logging
import time

from skyrocket.client import Message, PushConsumerSettings, ReceivedMessage
from skyrocket.testing import LocalCluster

log = logging.getLogger("example")


def main() -> None:
    with LocalCluster() as mq:
        log.info("ready after %.0f ms at %s", mq.ready_seconds * 1000, mq.name_server_address)
        mq.create_topic("Orders", queues=1)
        mq.create_group("Billing")
        attempts: list[int] = []

        def bill(message: ReceivedMessage) -> None:
            attempts.append(message.reconsume_times)
            raise RuntimeError("the bank does not answer")

        consumer = mq.push_consumer("Billing", settings=PushConsumerSettings(max_reconsume_times=5))
        consumer.subscribe("Orders", bill)
        with mq.producer() as producer, consumer:
            producer.send(Message("Orders", b"order 1", delay_level=18))  # in two hours
            mq.advance(hours=1)
            assert attempts == []
            mq.advance(hours=2)
            assert attempts == [0, 1, 2, 3, 4, 5]  # again after 10 s, 30 s, 1 min, 2 min, 3 min
        (letter,) = mq.dead_letters("Billing")
        log.info("a dead letter after %d attempts: %s", len(attempts), letter.body.decode())


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    logging.getLogger("skyrocket.client.consumer.handlers").setLevel(logging.ERROR)  # attempts fail on purpose
    began = time.perf_counter()
    main()
    log.info("all in %.1f s", time.perf_counter() - began)
