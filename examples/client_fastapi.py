"""A web application that sends and consumes in its own event loop. Run: python examples/client_fastapi.py

Serve it: uvicorn --app-dir examples client_fastapi:app. Without FastAPI (pip install fastapi httpx) nothing is run.
"""

import contextlib
import logging
import os
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

from local_server import name_server

from skyrocket import Message, Producer, PushConsumer, ReceivedMessage
from skyrocket.client import MessageContext

log = logging.getLogger("example")

try:
    from fastapi import FastAPI
    from fastapi.testclient import TestClient
except ImportError as missing:
    sys.stderr.write(f"skipped: this example needs FastAPI and httpx ({missing})\n")
    raise SystemExit(0) from None

shipped: list[str] = []


@contextlib.asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Producer and consumer live as long as the application; $NAMESRV_ADDR says where the cluster is."""
    consumer = PushConsumer("Shipping")

    @consumer.on("Orders", tags="paid")
    async def ship(message: ReceivedMessage) -> None:
        log.info("shipping %s", message.body.decode())
        shipped.append(message.body.decode())

    async with Producer("Shop") as producer, consumer:
        app.state.producer = producer
        yield


app = FastAPI(lifespan=lifespan)


@app.post("/orders/{number}/paid", status_code=202)
async def paid(number: str) -> dict[str, Any]:
    """The answer waits for the broker's: an order that was accepted is stored."""
    receipt = await app.state.producer.send(Message("Orders", number.encode(), tags="paid", keys=number))
    return {"message_id": receipt.message_id, "durable": receipt.is_durable}


@app.get("/shipped")
async def list_shipped() -> list[str]:
    return shipped


def main() -> None:
    with TestClient(app) as http:
        log.info("accepted: %s", http.post("/orders/o-1001/paid").json())
        deadline = time.monotonic() + 30
        while http.get("/shipped").json() != ["o-1001"]:
            assert time.monotonic() < deadline, "nothing was shipped"
            time.sleep(0.05)
        log.info("shipped: %s", http.get("/shipped").json())


if __name__ == "__main__":
    output = logging.StreamHandler()
    output.addFilter(MessageContext())
    logging.basicConfig(level=logging.INFO, handlers=[output], format="%(message)s [%(topic)s %(group)s]")
    with name_server() as address:
        os.environ["NAMESRV_ADDR"] = address
        main()
