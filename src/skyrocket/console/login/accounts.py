"""Accounts of brokers: whoever logs in with one does everything in its name, and brokers say what it may do."""

import asyncio
import itertools
from collections import OrderedDict
from dataclasses import replace
from typing import Final

from skyrocket.client.admin.admin import Admin
from skyrocket.client.core.errors import BrokerRefused, ClientError
from skyrocket.client.core.settings import Acl, ClientSettings
from skyrocket.client.producer.producer import Producer
from skyrocket.protocol.codes import ResponseCode

_MOST_ACCOUNTS: Final = 32
_SWITCHES: Final = ("authenticationEnabled", "aclEnable")
# How brokers of RocketMQ and Skyrocket say that it is not this account, rather than that it may not.
_NOT_THIS_ONE: Final = ("signature", "password", "is disabled", "not found", "not exist", "no accesskey", "invalid")
_PRODUCER_GROUP: Final = "skyrocket-console"


class LoginRefused(ClientError):
    """Not this account, or no accounts at all."""


class Actor:
    """Does what one account asks for."""

    def __init__(self, settings: ClientSettings, *, tolerant: bool = False) -> None:
        """`tolerant`: what brokers that answer say is enough; for reading alone."""
        self._settings = settings
        self.admin = Admin(client=settings, tolerant=tolerant)
        self._producer: Producer | None = None
        self._starting = asyncio.Lock()

    async def producer(self) -> Producer:
        """Started when it is first needed."""
        async with self._starting:
            if self._producer is None:
                producer = Producer(_PRODUCER_GROUP, client=self._settings)
                await producer.start()
                self._producer = producer
            return self._producer

    async def stop(self) -> None:
        """Close its connections."""
        if self._producer is not None:
            await self._producer.stop()
        await self.admin.stop()


class Accounts:
    """The console's own account, and those that have logged in; the ones used last are kept connected."""

    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings
        self.own = Actor(settings)
        self.reading = Actor(settings, tolerant=True)  # half a cluster is better than none
        self._actors: OrderedDict[Acl, Actor] = OrderedDict()
        self._numbers = itertools.count(1)
        self._connecting = asyncio.Lock()

    async def start(self) -> None:
        await self.own.admin.start()
        await self.reading.admin.start()

    async def stop(self) -> None:
        for actor in (*self._actors.values(), self.reading, self.own):
            await actor.stop()
        self._actors.clear()

    async def actor(self, credentials: Acl | None) -> Actor:
        """Who acts for an account; None is the console's own."""
        if credentials is None:
            return self.own
        async with self._connecting:
            actor = self._actors.get(credentials)
            if actor is None:
                # Clients of one name share connections, which are signed for one account.
                name = f"{self._settings.instance_name}-console-{next(self._numbers)}"
                actor = Actor(replace(self._settings, credentials=credentials, instance_name=name))
                await actor.admin.start()
                self._actors[credentials] = actor
                if len(self._actors) > _MOST_ACCOUNTS:
                    _, idle = self._actors.popitem(last=False)
                    await idle.stop()
            self._actors.move_to_end(credentials)
            return actor

    async def check(self, account: str, password: str) -> Acl:
        """The credentials of an account that brokers know; raises LoginRefused."""
        if not account.strip() or not password.strip():
            raise LoginRefused("give a name and a password of an account of the brokers")
        if not await self._brokers_check_accounts():
            raise LoginRefused(
                "the brokers of this cluster check no accounts (authenticationEnabled and aclEnable are false): log in "
                "with the token that the console printed when it started"
            )
        credentials = Acl(account, password)
        try:
            await (await self.actor(credentials)).admin.runtime_info(with_slaves=False)
        except BrokerRefused as error:
            remark = (error.remark or "").lower()
            if error.code != ResponseCode.NO_PERMISSION or any(words in remark for words in _NOT_THIS_ONE):
                await self.drop(credentials)
                raise LoginRefused("the brokers do not know this account, or its password is another") from error
        return credentials  # known; it may do little, and brokers will say so

    async def _brokers_check_accounts(self) -> bool:
        settings = await self.own.admin.broker_settings(with_slaves=False)
        return any(each.get(switch) == "true" for each in settings.values() for switch in _SWITCHES)

    async def drop(self, credentials: Acl) -> None:
        """Close the connections of an account; it is connected again when it is needed."""
        actor = self._actors.pop(credentials, None)
        if actor is not None:
            await actor.stop()
