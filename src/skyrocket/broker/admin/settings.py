"""Settings of a running broker: shown, changed, kept for the next start."""

import asyncio

from skyrocket.broker.state.live_settings import LiveSettings
from skyrocket.protocol.bodies.topics import DATA_VERSION
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.command import Body, RemotingCommand
from skyrocket.protocol.errors import SystemFailure
from skyrocket.protocol.requests.admin_broker import GetBrokerConfig, GetBrokerConfigAnswer, UpdateBrokerConfig
from skyrocket.remoting.answers import Outcome
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import Handlers, serve_raw


class SettingsProcessor:
    """One change after the other: each is checked, saved, and then takes effect."""

    def __init__(self, settings: LiveSettings) -> None:
        self._settings = settings
        self._turn = asyncio.Lock()

    def handlers(self) -> Handlers:
        return (
            serve_raw(UpdateBrokerConfig.code, self.update),
            serve_raw(GetBrokerConfig.code, self.show),
        )

    def show(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """GET_BROKER_CONFIG."""
        version = DATA_VERSION.encode(self._settings.data_version).decode()
        fields = GetBrokerConfigAnswer(version=version).to_fields()
        return request.answer(ResponseCode.SUCCESS, None, fields, self._settings.text().encode())

    def update(self, _: Peer, request: RemotingCommand) -> Outcome:
        """UPDATE_BROKER_CONFIG; without a body nothing is asked for, and that is done."""
        return self._update(request) if request.body else request.answer(ResponseCode.SUCCESS)

    async def _update(self, request: RemotingCommand) -> RemotingCommand:
        async with self._turn:
            change = self._settings.changed_by(_text(request.body))
            try:
                await asyncio.to_thread(self._settings.save, change)
            except OSError as error:
                raise SystemFailure(
                    f"nothing was changed, because the settings could not be saved: {error}. "
                    "Make the file of brokerConfigPath and its directory writable and try again"
                ) from error
            self._settings.apply(change)
        return request.answer(ResponseCode.SUCCESS)


def _text(body: Body) -> str:
    try:
        return bytes(body).decode()
    except UnicodeDecodeError as error:
        raise SystemFailure(f"string2Properties error: {error}") from error
