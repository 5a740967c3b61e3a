"""A client that speaks TLS to name server and broker."""

import asyncio
import ssl
from pathlib import Path

import pytest

from skyrocket.client.consumer.push_consumer import PushConsumer
from skyrocket.client.core.errors import NoNameServer
from skyrocket.client.core.message import Message, ReceivedMessage
from skyrocket.client.core.settings import ClientSettings
from skyrocket.client.producer.producer import Producer
from tests.interop.standalone import TLS_ONLY, running_standalone
from tests.waiting import until


def unverified() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # the server made its certificate itself
    return context


async def test_sends_and_pulls_travel_encrypted(tmp_path: Path) -> None:
    async def main(names: str) -> None:
        got: list[bytes] = []
        client = ClientSettings(names, tls=unverified())
        consumer = PushConsumer("Billing", client=client)

        @consumer.on("Orders")
        async def handle(message: ReceivedMessage) -> None:
            got.append(message.body)

        async with Producer("Shop", client=client) as producer:
            await producer.send(Message("Orders", b"0"))
            async with consumer:
                await asyncio.gather(*(producer.send(Message("Orders", b"x" * 2000)) for _ in range(50)))
                await until(lambda: len(got) == 51)
        async with Producer("Shop", names) as plain:
            with pytest.raises(NoNameServer, match="no name server answered"):
                await plain.send(Message("Orders", b"x"), timeout=2)

    with running_standalone(tmp_path, TLS_ONLY) as server:
        await main(server.name_server)
