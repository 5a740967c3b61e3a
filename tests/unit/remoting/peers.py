"""Both ends for tests: a server with a few handlers, and a peer that sends whatever bytes it likes."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from skyrocket.clock import Clock
from skyrocket.protocol.codes import RequestCode, ResponseCode
from skyrocket.protocol.command import ONEWAY_FLAG, RemotingCommand
from skyrocket.protocol.frames import FrameReader, encode
from skyrocket.remoting.addresses import Address
from skyrocket.remoting.answers import Outcome
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.router import Router
from skyrocket.remoting.server import RemotingServer, ServerSettings
from skyrocket.remoting.tls import ServerTls

ECHO = RequestCode.GET_MAX_OFFSET  # answers with the fields and the body that came
LOCALHOST = "127.0.0.1"


def echo(_: Peer, request: RemotingCommand) -> Outcome:
    return request.answer(ResponseCode.SUCCESS, None, request.ext_fields, request.body)


def echo_router() -> Router:
    router = Router()
    router.register(ECHO, echo)
    return router


def request(code: int = ECHO, opaque: int = 0, body: bytes = b"", *, oneway: bool = False, version: int = 493) -> bytes:
    flag = ONEWAY_FLAG if oneway else 0
    return encode(RemotingCommand(code, opaque, flag, {"offset": str(opaque)}, body, version=version))


@asynccontextmanager
async def serving(
    router: Router | None = None,
    settings: ServerSettings | None = None,
    tls: ServerTls | None = None,
    clock: Clock | None = None,
) -> AsyncIterator[tuple[RemotingServer, Address]]:
    async with RemotingServer(router or echo_router(), settings, tls, clock) as server:
        yield server, await server.listen(LOCALHOST, 0)


class RawPeer:
    """One connection of bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._frames = FrameReader()
        self._received: list[RemotingCommand] = []

    @classmethod
    @asynccontextmanager
    async def connected(
        cls, address: Address, tls: ssl.SSLContext | None = None, *, source: str | None = None
    ) -> AsyncIterator["RawPeer"]:
        """`source`: from another address of this machine."""
        local = None if source is None else (source, 0)
        reader, writer = await asyncio.open_connection(address.host, address.port, ssl=tls, local_addr=local)
        try:
            yield cls(reader, writer)
        finally:
            writer.transport.abort()
            await asyncio.sleep(0)

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def command(self, seconds: float = 60.0) -> RemotingCommand:
        """The next frame that comes."""
        while not self._received:
            data = await asyncio.wait_for(self.reader.read(1 << 18), seconds)
            assert data, "the connection was closed"
            self._received += self._frames.receive(data)
        return self._received.pop(0)

    async def commands(self, count: int) -> list[RemotingCommand]:
        return [await self.command() for _ in range(count)]

    async def asks(self, data: bytes) -> RemotingCommand:
        self.send(data)
        return await self.command()

    async def is_closed(self, seconds: float = 60.0) -> bool:
        """Whether the other side closes; what it sends before is not looked at."""
        try:
            while await asyncio.wait_for(self.reader.read(1 << 18), seconds):
                pass
        except TimeoutError:
            return False
        except ConnectionError:
            pass
        return True

    async def is_quiet(self, seconds: float = 0.15) -> bool:
        """Whether the connection stays open and nothing comes."""
        try:
            await asyncio.wait_for(self.reader.read(1), seconds)
        except TimeoutError:
            return True
        return False
