"""dramatiq on RocketMQ: a task, a delay, a retry. Run: python examples/tasks_dramatiq.py

As a service: dramatiq --path examples tasks_dramatiq. Without dramatiq (pip install dramatiq) nothing is run.
"""

import logging
import os
import sys
import threading

from local_server import name_server

log = logging.getLogger("example")

try:
    import dramatiq
    from dramatiq import Worker

    from skyrocket.integrations.dramatiq import RocketmqBroker
except ImportError as missing:
    sys.stderr.write(f"skipped: this example needs dramatiq ({missing})\n")
    raise SystemExit(0) from None

broker = RocketmqBroker()  # $NAMESRV_ADDR says where the cluster is
dramatiq.set_broker(broker)
attempts: list[int] = []
done = threading.Barrier(3)


@dramatiq.actor
def mail(number: int) -> None:
    log.info("mailed %d", number)
    done.wait(60)


@dramatiq.actor(max_retries=3, min_backoff=1000)
def pay(number: int) -> None:
    attempts.append(number)
    if len(attempts) == 1:
        raise ConnectionError("the bank is closed")
    log.info("paid %d at the second attempt", number)
    done.wait(60)


def main() -> None:
    mail.send_with_options(args=(7,), delay=1000)  # kept by the broker, not by a worker
    pay.send(8)
    worker = Worker(broker, worker_threads=2, worker_timeout=200)
    worker.start()
    done.wait(60)
    worker.stop()
    broker.close()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    logging.getLogger("dramatiq").setLevel(logging.CRITICAL)
    with name_server() as address:
        os.environ["NAMESRV_ADDR"] = address
        main()
