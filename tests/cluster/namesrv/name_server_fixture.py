"""A name server on a free port, and connections to it that show whole commands."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

from skyrocket.cli.namesrv import name_server
from skyrocket.config.sections import NameServerConfig
from skyrocket.namesrv.name_server import NameServer
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.frames import FrameReader, encode
from skyrocket.remoting.addresses import Address

ANSWER_SECONDS = 60.0


@contextlib.asynccontextmanager
async def running(folder: Path, config: NameServerConfig | None = None) -> AsyncIterator[tuple[NameServer, Address]]:
    """A name server whose files are in `folder`."""
    chosen = replace(
        config or NameServerConfig(),
        listen_port=0,
        bind_address="127.0.0.1",
        kv_config_path=str(folder / "kvConfig.json"),
        config_store_path=str(folder / "namesrv.properties"),
    )
    async with name_server(chosen) as server:
        yield server, await server.start()


class RawConnection:
    """Sends bytes, receives commands."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._frames = FrameReader()
        self._received: list[RemotingCommand] = []

    @classmethod
    async def to(cls, address: Address) -> "RawConnection":
        return cls(*await asyncio.open_connection(address.host, address.port))

    async def ask(self, request: RemotingCommand | bytes) -> RemotingCommand:
        """Send and receive one command."""
        self.send(request)
        return await self.receive()

    def send(self, request: RemotingCommand | bytes) -> None:
        self._writer.write(request if isinstance(request, bytes) else encode(request))

    async def receive(self, seconds: float = ANSWER_SECONDS) -> RemotingCommand:
        """The next command; raises TimeoutError or ConnectionError."""
        while not self._received:
            data = await asyncio.wait_for(self._reader.read(65536), seconds)
            if not data:
                raise ConnectionError("closed by the server")
            self._received += self._frames.receive(data)
        return self._received.pop(0)

    async def is_closed_within(self, seconds: float) -> bool:
        """Whether the server closes without a word."""
        try:
            return await asyncio.wait_for(self._reader.read(1), seconds) == b""
        except ConnectionError:
            return True
        except TimeoutError:
            return False

    def close(self) -> None:
        self._writer.close()
