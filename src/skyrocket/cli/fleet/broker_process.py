"""One broker as a child process: started with the same interpreter, its lines shown with its name, stopped in order."""

import asyncio
import contextlib
import re
import signal
import sys
from collections.abc import Callable
from typing import Final

from skyrocket.cli.fleet.plan import BrokerPlan, Places
from skyrocket.errors import SkyrocketError

STOP_SECONDS: Final = 30.0  # then it is killed; recovery takes care of the rest
_LONGEST_LINE: Final = 64 << 10
_READY: Final = re.compile(r"The broker\[[^,\]]+, (\S+)\] boot success")


class BrokerDied(SkyrocketError):
    """The process ended before it was ready."""


class BrokerProcess:
    """A running child. Its standard input is a pipe that nobody writes to: the child stops when it ends."""

    def __init__(self, plan: BrokerPlan, process: asyncio.subprocess.Process, show: Callable[[str], None]) -> None:
        self.plan = plan
        self._process = process
        self._show = show
        self._address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._output = asyncio.create_task(self._forward(), name=f"output of {plan.label}")

    @classmethod
    async def start(cls, plan: BrokerPlan, places: Places, show: Callable[[str], None]) -> "BrokerProcess":
        """Start the program; `ready` waits until it works."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "skyrocket", "broker", *plan.arguments, *places.arguments, "--stop-with-stdin"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C in a terminal is for the parent, which stops all in order
        )
        return cls(plan, process, show)

    @property
    def pid(self) -> int:
        return self._process.pid

    async def ready(self) -> str:
        """The address that clients use; raises BrokerDied."""
        await asyncio.wait((self._address, self._output), return_when=asyncio.FIRST_COMPLETED)
        if self._address.done():
            return self._address.result()
        raise BrokerDied(f"{self.plan.label} {await self.ended()} before it was ready; its own words are above")

    async def ended(self) -> str:
        """Wait for the end; how it ended."""
        code = await self._process.wait()
        await asyncio.wait((self._output,), timeout=1.0)
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"

    async def stop(self) -> None:
        """SIGTERM, and SIGKILL for one that does not listen; may be called at any time."""
        self._signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(self._process.wait(), STOP_SECONDS)
        except TimeoutError:
            self._show(f"does not stop within {STOP_SECONDS:g} s and is killed")
            self._signal(signal.SIGKILL)
            await self._process.wait()
        await asyncio.wait((self._output,), timeout=1.0)
        self._output.cancel()
        await asyncio.gather(self._output, return_exceptions=True)
        if self._process.stdin is not None:
            self._process.stdin.close()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            if self._process.returncode is None:
                self._process.send_signal(number)

    async def _forward(self) -> None:
        assert self._process.stdout is not None
        rest = b""
        while data := await self._process.stdout.read(_LONGEST_LINE):
            *lines, rest = (rest + data).split(b"\n")
            if len(rest) > _LONGEST_LINE:  # memory has a bound, whatever a child prints
                lines, rest = [*lines, rest], b""
            for line in lines:
                self._line(line.decode("utf-8", "replace"))
        if rest:
            self._line(rest.decode("utf-8", "replace"))

    def _line(self, text: str) -> None:
        self._show(text)
        if not self._address.done() and (found := _READY.match(text)) is not None:
            self._address.set_result(found[1])
