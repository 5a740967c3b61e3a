"""Finding name servers: several, one that is away, none, and an HTTP address that tells them."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from skyrocket.broker.registration.feature import RegistrationFeature
from skyrocket.client.consumer.push_consumer import PushConsumer
from skyrocket.client.core.errors import NameServersDiffer, NoNameServer
from skyrocket.client.core.instance import ClientInstance
from skyrocket.client.core.message import Message
from skyrocket.client.core.settings import ClientSettings
from skyrocket.client.producer.producer import Producer
from tests.cluster.client.inside import instance_of, known_topics
from tests.cluster.servers import cluster
from tests.waiting import until


@contextmanager
def web_server(answers: list[tuple[int, str]]) -> Iterator[str]:
    """Gives one answer after the other, the last one for ever."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            status, text = answers[min(len(asked), len(answers)) - 1]
            self.send_response(status)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/rocketmq/nsaddr"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


async def test_a_name_server_that_is_away_is_passed_over(tmp_path: Path) -> None:
    async with cluster(tmp_path) as given:
        for _ in range(4):  # the order is random
            async with Producer("Shop", f"127.0.0.1:1;{given.names}") as producer:
                await producer.send(Message("Orders", b"x"))


async def test_without_any_name_server_the_error_says_what_to_check(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Producer("Shop", "127.0.0.1:1;127.0.0.1:2") as producer:
        with pytest.raises(NoNameServer) as caught:
            await producer.send(Message("Orders", b"x"))
        text = str(caught.value)
        assert text.startswith("no name server answered (127.0.0.1:")
        assert "127.0.0.1:2: could not connect: nothing listens there" in text
        assert "check the addresses (-n or NAMESRV_ADDR in the terminal, name_servers= in a program)" in text
    consumer = PushConsumer("Billing", "127.0.0.1:1")
    consumer.subscribe("Orders", lambda message: None)
    with pytest.raises(NoNameServer, match="no name server answered"):
        await consumer.start()
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)
    with pytest.raises(NoNameServer, match="no name server is configured: give one as host:9876 \\(-n or NAMESRV_ADDR"):
        await Producer("Shop").start()
    monkeypatch.setenv("NAMESRV_ADDR", "10.0.0.1:9876")
    assert ClientSettings().addresses() == ("10.0.0.1:9876",)


@pytest.mark.requirement("C074")
async def test_an_http_address_tells_the_name_servers(tmp_path: Path) -> None:
    async with cluster(tmp_path) as given:
        with web_server([(200, f"{given.names}\nsecond line\n")]) as url:
            client = ClientSettings(name_server_lookup=url)
            async with Producer("Shop", client=client) as producer:
                await producer.send(Message("Orders", b"x"))
                assert instance_of(producer).names.addresses == (given.names,)


async def test_an_http_address_that_does_not_know_is_named() -> None:
    with web_server([(404, "no"), (200, " "), (200, "127.0.0.1:1")]) as url:
        client = ClientSettings(name_server_lookup=url)
        async with Producer("Shop", client=client) as producer:
            with pytest.raises(NoNameServer, match=r"did not tell the name servers .*404.*: check name_server_lookup"):
                await producer.send(Message("Orders", b"x"))
            with pytest.raises(NoNameServer, match="told no name server: its first line must be host:port;host:port"):
                await producer.send(Message("Orders", b"x"))
            with pytest.raises(NoNameServer, match="no name server answered"):
                await producer.send(Message("Orders", b"x"))


async def test_one_client_id_cannot_serve_two_clusters() -> None:
    one = await ClientInstance.acquire(ClientSettings("127.0.0.1:1", instance_name="x"))
    with pytest.raises(NameServersDiffer, match="choose another instance_name for the second cluster"):
        await ClientInstance.acquire(ClientSettings("127.0.0.1:2", instance_name="x"))
    await one.release()
    other = await ClientInstance.acquire(ClientSettings("127.0.0.1:2", instance_name="x"))
    await other.release()


@pytest.mark.requirement("C062", "C074")
async def test_routes_are_refreshed_and_new_brokers_used(tmp_path: Path) -> None:
    async with cluster(tmp_path) as given:
        assert ClientSettings().route_refresh == 30.0
        client = ClientSettings(given.names, route_refresh=0.05)
        async with Producer("Shop", client=client) as producer:
            await producer.send(Message("Orders", b"x"))
            broker = await given.start_broker("broker-b")
            broker.tables.topics.ensure("Orders", 4)
            await until(lambda: known_topics(producer)["Orders"].is_guess is False)
            await broker.feature(RegistrationFeature).registration.register()
            await until(lambda: len(known_topics(producer)["Orders"].queues) == 8)


def ours() -> list[str]:
    """Tasks that run the client's code."""
    coroutines = [(task, task.get_coro()) for task in asyncio.all_tasks()]
    return [
        task.get_name()
        for task, work in coroutines
        if "skyrocket/client/" in getattr(work, "cr_code", main_code).co_filename
    ]


main_code = (lambda: None).__code__


async def test_a_closed_client_leaves_no_task_behind(tmp_path: Path) -> None:
    async with cluster(tmp_path) as given:
        async with Producer("Shop", given.names) as producer:
            await producer.send(Message("Orders", b"x"))
            assert len(ours()) >= 3
        assert not ours()
