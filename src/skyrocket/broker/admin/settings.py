"""Settings of a running broker: shown, changed, kept for the next start."""

import asyncio

from skyrocket.broker.state.live_settings import LiveSettings
from skyrocket.protocol.bodies.topics import DATA_VERSION
from skyrocket.protocol.command import Body
from skyrocket.protocol.errors import SystemFailure
from skyrocket.protocol.requests.admin_broker import GetBrokerConfig, GetBrokerConfigAnswer, UpdateBrokerConfig
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import Answered, Handlers, serve


class SettingsProcessor:
    """One change after the other: each is checked, saved, and then takes effect."""

    def __init__(self, settings: LiveSettings) -> None:
        self._settings = settings
        self._turn = asyncio.Lock()

    def handlers(self) -> Handlers:
        return (
            serve(UpdateBrokerConfig, self.update),
            serve(GetBrokerConfig, self.show),
        )

    def show(self, _: Peer, __: GetBrokerConfig, ___: Body) -> Answered:
        """All settings as Java properties, and their version."""
        version = DATA_VERSION.encode(self._settings.data_version).decode()
        return Answered(GetBrokerConfigAnswer(version=version), self._settings.text().encode())

    async def update(self, _: Peer, __: UpdateBrokerConfig, body: Body) -> None:
        """Change settings; without a body nothing is asked for, and that is done."""
        if not body:
            return
        async with self._turn:
            change = self._settings.changed_by(_text(body))
            try:
                await asyncio.to_thread(self._settings.save, change)
            except OSError as error:
                raise SystemFailure(
                    f"nothing was changed, because the settings could not be saved: {error}. "
                    "Make the file of brokerConfigPath and its directory writable and try again"
                ) from error
            self._settings.apply(change)


def _text(body: Body) -> str:
    try:
        return bytes(body).decode()
    except UnicodeDecodeError as error:
        raise SystemFailure(
            f"string2Properties error: the settings are not UTF-8 text, see byte {error.start}; nothing was changed"
        ) from error
