"""Decisions in ZooKeeper, by kazoo.

    /skyrocket/controllers/3f…-0000000012    ephemeral and numbered: our place in the line of leaders
    /skyrocket/sets/broker-a                 a document; its version is the node's

Every write is a transaction that also checks our own node. ZooKeeper removes that with our session, and from then on no
write of ours gets through. Reads need no `sync`: whoever leads has seen the node before its own disappear, and with it
everything that was written before.
"""

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Callable, Mapping
from typing import Any, Final

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import (
    BadVersionError,
    KazooException,
    NodeExistsError,
    NoNodeError,
    SessionClosedRequireSaslError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.security import CREATOR_ALL_ACL

from skyrocket.clock import Clock, SystemClock
from skyrocket.config.sections import ControllerConfig
from skyrocket.controller.engines.engine import Document, EngineUnavailable, Member, Overtaken, Standing, Told
from skyrocket.controller.engines.member_line import decode_member, encode_member, standing_of
from skyrocket.controller.engines.place import Place, key_of, name_of
from skyrocket.controller.engines.reaching import why_unreachable

_logger = logging.getLogger(__name__)

_OVERTAKEN: Final = (BadVersionError, NoNodeError, NodeExistsError)
_CALL_SECONDS: Final = 3.0  # less than a request waits
_NUMBER_LENGTH: Final = 10  # ZooKeeper's
# Who shows an account of a kind that ZooKeeper does not want has its connection closed without a word.
_SILENT: Final = (
    "it takes no session: it is no ZooKeeper or has no majority, or it wants TLS (controllerStoreTls…) or accounts of "
    "another kind (SASL is not supported)"
)
_WANTS_ACCOUNT: Final = (
    "it serves nobody without an account of its kind (enforce.auth.schemes): give controllerStoreUser and "
    "controllerStorePassword for digest; SASL is not supported"
)


class ZooKeeperEngine:
    """One session after the other, each with a place in the line."""

    def __init__(self, place: Place, config: ControllerConfig, clock: Clock | None = None) -> None:
        self.description = str(place)
        self._clock = clock or SystemClock()
        self._session_seconds = config.session_ms / 1000
        self._line_path = f"{place.path}/controllers"
        self._sets_path = f"{place.path}/sets"
        self._look_seconds = config.session_ms / 3000
        self._hosts = place.hosts
        self._client = _client_of(place, config)
        self._mark = secrets.token_hex(8)  # by it we know a node of ours whose creation was cut off
        self._why_not_connected = _SILENT
        self._own_name: str | None = None
        self._members: dict[str, Member] = {}
        self._told: Told = lambda _: None
        self._me = Member("", "")
        self._staying: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._line_changed: Callable[[object], None] = lambda _: None

    async def join(self, me: Member, told: Told) -> None:
        self._me, self._told = me, told
        loop = asyncio.get_running_loop()

        def state_changed(state: str) -> None:  # in a thread of kazoo's
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(self._state_changed, state)

        def line_changed(_: object) -> None:  # the same
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self._changed.set)

        self._line_changed = line_changed  # always the same one: kazoo keeps every other that it is given
        self._client.add_listener(state_changed)
        self._client.start_async()
        self._staying = asyncio.create_task(self._stay_in_line(), name="line of controllers in ZooKeeper")

    async def close(self) -> None:
        if self._staying is None:
            return
        staying, self._staying, self._told = self._staying, None, lambda _: None
        self._own_name = None
        staying.cancel()
        await asyncio.gather(staying, return_exceptions=True)
        await asyncio.to_thread(self._stop_client)  # ends the session, and with it our place

    def _stop_client(self) -> None:
        self._client.stop()
        self._client.close()

    # ── documents ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def documents(self) -> Mapping[str, Document]:
        names = await self._done(self._client.get_children_async(self._sets_path))
        found = await asyncio.gather(*(self._document(name) for name in names))
        return {name_of(name): document for name, document in zip(names, found, strict=True)}

    async def _document(self, name: str) -> Document:
        content, state = await self._done(self._client.get_async(f"{self._sets_path}/{name}"))
        return Document(content, state.version)

    async def write(self, leadership: int, name: str, content: bytes | None, version: int | None) -> int | None:
        own_name = self._own_name
        if own_name is None or _number_of(own_name) != leadership:
            raise Overtaken(f"leadership {leadership} is over")
        path = f"{self._sets_path}/{key_of(name)}"
        transaction = self._client.transaction()
        transaction.check(f"{self._line_path}/{own_name}", 0)
        if content is None:
            transaction.delete(path, version)
        elif version is None:
            transaction.create(path, content)
        else:
            transaction.set_data(path, content, version)
        try:
            checked, written = await self._done(transaction.commit_async())
        except BaseException:
            # It may happen yet. It cannot after our node is gone: a new place in the line is a new number.
            self._give_place_up()
            raise
        for result in (checked, written):
            if isinstance(result, _OVERTAKEN):
                self._changed.set()
                raise Overtaken(f"{name} has another version than {version}, or leadership {leadership} is over")
        if isinstance(written, Exception):
            raise EngineUnavailable(f"ZooKeeper refused: {written!r}")
        if content is None:
            return None
        return 0 if version is None else int(written.version)

    async def _done(self, result: Any) -> Any:
        """What kazoo's threads bring; raises EngineUnavailable."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Any] = loop.create_future()

        def settle() -> None:
            if not done.done():
                if result.exception is None:
                    done.set_result(result.value)
                else:
                    done.set_exception(result.exception)

        def arrived(_: Any) -> None:  # in a thread of kazoo's
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(settle)

        result.rawlink(arrived)
        try:
            async with asyncio.timeout(_CALL_SECONDS):
                return await done
        except SessionClosedRequireSaslError as error:  # its name is older than the other kinds of accounts
            self._why_not_connected = _WANTS_ACCOUNT
            raise EngineUnavailable(_WANTS_ACCOUNT) from error
        except (KazooException, KazooTimeoutError) as error:
            raise EngineUnavailable(f"ZooKeeper did not do it: {error!r}") from error
        except TimeoutError:
            raise EngineUnavailable(f"ZooKeeper did not answer within {_CALL_SECONDS:g} s") from None

    # ── the line ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _stay_in_line(self) -> None:
        while True:
            self._changed.clear()
            try:
                await self._look()
            except EngineUnavailable as error:
                self._told(Standing(trouble=f"{self.description} cannot be used: {error}"))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._look_seconds):
                    await self._changed.wait()

    def _state_changed(self, state: str) -> None:
        if state != KazooState.CONNECTED:
            self._told(Standing(trouble=f"the connection to {self.description} is lost"))
        if state == KazooState.LOST:
            self._own_name = None
        self._changed.set()

    async def _look(self) -> None:
        """Take a place if we have none, and see who is the first."""
        if not self._client.connected:
            raise EngineUnavailable(await why_unreachable(self._hosts) or self._why_not_connected)
        asked = self._clock.monotonic()  # what ZooKeeper answers to lets the session last so long from here on
        names = await self._names_in_line()
        self._why_not_connected = _SILENT
        if self._own_name not in names:
            self._own_name = await self._new_place(names)
            names = await self._names_in_line()
        line = {_number_of(name): await self._member(name) for name in names}
        self._members = {name: self._members[name] for name in names}
        if self._client.connected and self._own_name is not None:
            sure_until = asked + self._session_seconds
            self._told(standing_of(line, _number_of(self._own_name), sure_until))

    async def _names_in_line(self) -> list[str]:
        try:
            names: list[str] = await self._done(
                self._client.get_children_async(self._line_path, watch=self._line_changed)
            )
        except EngineUnavailable as error:
            if not isinstance(error.__cause__, NoNodeError):
                raise
            for path in (self._line_path, self._sets_path):
                await self._done(self._client.ensure_path_async(path))
            return await self._names_in_line()
        return names

    async def _new_place(self, names: list[str]) -> str:
        """Our node; what is left of an earlier attempt or of a place that we gave up is removed first."""
        for name in names:
            if name.startswith(self._mark):
                await self._removed(f"{self._line_path}/{name}")
        made: str = await self._done(
            self._client.create_async(
                f"{self._line_path}/{self._mark}-", encode_member(self._me), ephemeral=True, sequence=True
            )
        )
        return made.rpartition("/")[2]

    async def _removed(self, path: str) -> None:
        try:
            await self._done(self._client.delete_async(path))
        except EngineUnavailable as error:
            if not isinstance(error.__cause__, NoNodeError):
                raise

    async def _member(self, name: str) -> Member:
        if name not in self._members:
            content, _ = await self._done(self._client.get_async(f"{self._line_path}/{name}"))
            self._members[name] = decode_member(content)
        return self._members[name]

    def _give_place_up(self) -> None:
        self._own_name = None
        self._told(Standing(trouble=f"a write to {self.description} was cut off"))
        self._changed.set()


def _number_of(name: str) -> int:
    return int(name[-_NUMBER_LENGTH:])


def _client_of(place: Place, config: ControllerConfig) -> Any:
    with_account = bool(config.store_user)
    return KazooClient(
        hosts=",".join(place.hosts),
        timeout=config.session_ms / 1000,
        connection_retry={"max_tries": -1, "delay": 0.1, "backoff": 2, "max_delay": 1.0},
        auth_data=[("digest", f"{config.store_user}:{config.store_password}")] if with_account else None,
        default_acl=CREATOR_ALL_ACL if with_account else None,
        use_ssl=config.store_tls,
        ca=config.store_tls_ca or None,
        certfile=config.store_tls_cert or None,
        keyfile=config.store_tls_key or None,
        check_hostname=True,
        logger=_Quieter(_logger),
    )


class _Quieter(logging.LoggerAdapter[logging.Logger]):
    """Kazoo's warnings are details: that we cannot work, and why, is our own line."""

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        super().log(logging.INFO if level == logging.WARNING else level, msg, *args, **kwargs)
