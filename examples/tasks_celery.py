"""Celery on RocketMQ: tasks, a retry, a worker in this process. Run: python examples/tasks_celery.py

As a service: celery --workdir examples -A tasks_celery worker. Without Celery (pip install celery) nothing is run.
"""

import logging
import os
import sys
import threading
from typing import Any

from local_server import name_server

log = logging.getLogger("example")
log.setLevel(logging.INFO)  # Celery's worker sets the level of the root

try:
    from celery import Celery
    from celery.contrib.testing.worker import start_worker

    import skyrocket.integrations.celery  # noqa: F401 - makes rocketmq:// known
except ImportError as missing:
    sys.stderr.write(f"skipped: this example needs Celery ({missing})\n")
    raise SystemExit(0) from None

app = Celery("shop", broker=f"rocketmq://{os.environ.get('NAMESRV_ADDR', '127.0.0.1:9876')}")
app.conf.update(worker_enable_remote_control=False, task_acks_late=True, worker_hijack_root_logger=False)
done = threading.Event()


@app.task(bind=True, autoretry_for=(ConnectionError,), retry_backoff=1, max_retries=3)
def pay(self: Any, number: int) -> None:
    if self.request.retries == 0:
        raise ConnectionError("the bank is closed")
    log.info("paid %d at the second attempt", number)
    done.set()


def main() -> None:
    pay.delay(8)
    with start_worker(app, pool="solo", perform_ping_check=False, loglevel="ERROR", shutdown_timeout=30):
        assert done.wait(60), "nothing was paid"


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    with name_server() as address:
        app.conf.broker_url = f"rocketmq://{address}"
        main()
