"""What handlers say that they take is what their requests declare; the type checker cannot see it."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from skyrocket.config.sections import BrokerConfig
from skyrocket.protocol.command import Body
from skyrocket.protocol.requests.catalogue import REQUESTS
from skyrocket.protocol.requests.header import Request
from skyrocket.remoting.router import Router
from skyrocket.remoting.serving import Serving
from tests.cluster.broker.access_fixture import WITH_USERS, broker_with_accounts
from tests.cluster.broker.broker_fixture import running_broker
from tests.cluster.namesrv import name_server_fixture


async def test_handlers_take_what_their_requests_declare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served = await all_served(tmp_path, monkeypatch)
    assert len(served) > 90
    for code, handler in served.items():
        request = REQUESTS[code]
        hints = get_type_hints(handler)
        hints.pop("return")
        _, header, body = hints.values()
        assert request in (header, *get_args(header)), handler
        assert body == body_type(request), handler


async def all_served(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[int, Any]:
    """The typed handlers of a name server and of brokers without access control, with users, and with accounts."""
    servings: list[Serving] = []
    add = Router.add

    def noted(router: Router, *added: Serving) -> None:
        servings.extend(added)
        add(router, *added)

    monkeypatch.setattr(Router, "add", noted)
    async with AsyncExitStack() as running:
        await running.enter_async_context(name_server_fixture.running(folder))
        await running.enter_async_context(running_broker(folder / "open", BrokerConfig()))
        await running.enter_async_context(running_broker(folder / "users", WITH_USERS))
        await running.enter_async_context(broker_with_accounts(folder))
    return {code: each.typed for each in servings if each.typed is not None for code in each.codes}


def body_type(request: type[Request[Any]]) -> object:
    if request.body is None:
        return Body
    content = type(request.body.decode(b'{"groupName":"g","clientID":"c"}'))  # what must be there in one of them
    return content | None if request.optional_body else content
