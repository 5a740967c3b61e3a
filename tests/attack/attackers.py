"""Raw connections, and floods over them; everything ends with its `with` block."""

import contextlib
import selectors
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any, Final, Self

from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.frames import FrameReader, encode
from skyrocket.protocol.requests.header import Request
from skyrocket.remoting.addresses import Address
from skyrocket.remoting.exchange import command_of

_READ_SIZE: Final = 1 << 18
_opaque = count(1)


def frame(request: Request[Any], body: bytes = b"") -> bytes:
    """A typed request as the bytes of its frame."""
    command = command_of(request, body)
    command.opaque = next(_opaque)
    return encode(command)


@contextlib.contextmanager
def connections(address: str, number: int, *, source: str = "") -> Iterator[list[socket.socket]]:
    """Open sockets, from another address of this machine if one is given; those that are refused are closed soon."""
    opened: list[socket.socket] = []
    try:
        for _ in range(number):
            try:
                opened.append(socket.create_connection(Address.parse(address), 10.0, (source, 0)))
            except OSError:
                time.sleep(0.001)
        yield opened
    finally:
        for connection in opened:
            connection.close()


def is_closed(connection: socket.socket) -> bool:
    """Whether the server has closed it; what it said is thrown away."""
    connection.setblocking(False)
    try:
        while connection.recv(_READ_SIZE):
            pass
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


class Flood:
    """Writes `next_bytes()` to every connection as fast as each takes them, and reads what comes without a look.

    It runs in a thread until the block ends. `sent` and `received` are bytes; `lost` are connections that the server
    closed.
    """

    def __init__(
        self, sockets: Sequence[socket.socket], next_bytes: Callable[[], bytes], *, reads: bool = True
    ) -> None:
        self.sent = self.received = self.lost = 0
        self._next_bytes = next_bytes
        self._reads = reads
        self._selector = selectors.DefaultSelector()
        self._unsent: dict[socket.socket, memoryview] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="flood")
        for connection in sockets:
            connection.setblocking(False)
            self._unsent[connection] = memoryview(b"")
            self._selector.register(connection, selectors.EVENT_READ | selectors.EVENT_WRITE)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()
        self._selector.close()

    def _run(self) -> None:
        while not self._stopping.is_set() and self._unsent:
            for key, events in self._selector.select(timeout=0.1):
                connection = key.fileobj
                assert isinstance(connection, socket.socket)
                try:
                    if events & selectors.EVENT_READ and self._reads:
                        self._read(connection)
                    if events & selectors.EVENT_WRITE:
                        self._write(connection)
                except BlockingIOError:
                    pass
                except OSError:
                    self.lost += 1
                    self._selector.unregister(connection)
                    del self._unsent[connection]

    def _read(self, connection: socket.socket) -> None:
        data = connection.recv(_READ_SIZE)
        if not data:
            raise ConnectionResetError
        self.received += len(data)

    def _write(self, connection: socket.socket) -> None:
        unsent = self._unsent[connection] or memoryview(self._next_bytes())
        written = connection.send(unsent)
        self.sent += written
        self._unsent[connection] = unsent[written:]


class Askers:
    """Asks on every connection and waits for the answer, again and again, until the block ends.

    `answers` are the codes of all answers, by how often they came.
    """

    def __init__(self, sockets: Sequence[socket.socket], next_request: Callable[[], bytes]) -> None:
        self.answers: Counter[int] = Counter()
        self._next_request = next_request
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(each,), name="asker") for each in sockets]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _run(self, connection: socket.socket) -> None:
        while not self._stopping.is_set():
            self.answers[ask(connection, self._next_request()).code] += 1


def ask(connection: socket.socket, request: bytes) -> RemotingCommand:
    """One request and its answer."""
    frames = FrameReader()
    connection.settimeout(60.0)
    connection.sendall(request)
    while True:
        data = connection.recv(_READ_SIZE)
        if not data:
            raise ConnectionResetError("the server closed the connection instead of an answer")
        for answer in frames.receive(data):
            return answer
