"""Credentials, TLS and other settings that clients share. Run: python examples/client_credentials.py"""

import asyncio
import logging

from local_server import name_server

from skyrocket import Acl, Admin, ClientSettings, Message, Producer

log = logging.getLogger("example")


async def main(names: str) -> None:
    # A broker without access control does not look at signatures, so this runs anywhere.
    settings = ClientSettings(names, credentials=Acl("shop", "a-secret-of-the-shop"), instance_name="shop-1")
    async with Admin(client=settings) as admin, Producer("Shop", client=settings) as producer:  # one connection each
        receipt = await producer.send(Message("Orders", b"signed"))
        log.info("%s at one of %s", receipt.status.name, ", ".join((await admin.cluster()).brokers))


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    with name_server() as address:
        asyncio.run(main(address))
