"""A fresh server with one client program beside it, for as many scenarios as a test has."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from tests.interop.client_kinds import Launch
from tests.interop.client_program import ClientProgram, running_client
from tests.interop.observer import Observer, observing
from tests.interop.scenarios import SCENARIOS, Stage
from tests.interop.standalone import QUICK_CHECKS, SHORT_DELAYS, SQL_FILTERS, Standalone, running_standalone


class LedClient:
    """Runs scenarios; a program that got lost in one is started again for the next."""

    def __init__(self, launch: Launch, server: Standalone, observer: Observer, home: Path) -> None:
        self._launch = launch
        self._server = server
        self._observer = observer
        self._home = home
        self._running = contextlib.ExitStack()
        self._program: ClientProgram | None = None

    def run(self, scenario: str) -> None:
        """Under a topic and a group that no other scenario has."""
        name = scenario.replace("-", "_")
        SCENARIOS[scenario](Stage(self._client(), self._observer, f"Topic_{name}", f"Group_{name}"))

    def restart(self) -> None:
        """For the scenario after a failure: consumers of the failed one may still be there."""
        self._running.close()
        self._program = None

    def _client(self) -> ClientProgram:
        if self._program is None or not self._program.is_running:
            self.restart()
            command = self._launch.command(self._server.name_server, self._home)
            self._program = self._running.enter_context(running_client(command, self._launch.environment, self._home))
        return self._program


@contextlib.contextmanager
def led_client(launch: Launch, home: Path) -> Iterator[LedClient]:
    settings = {**SHORT_DELAYS, **SQL_FILTERS, **QUICK_CHECKS, **launch.server_settings}
    with running_standalone(home, settings) as server, observing(server) as observer:
        led = LedClient(launch, server, observer, home)
        try:
            yield led
        finally:
            led.restart()
