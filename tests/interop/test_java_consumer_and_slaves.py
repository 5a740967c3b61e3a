"""RocketMQ's own push consumer with our pair: it goes on at the slave when the master is killed, and comes back."""

import time
from pathlib import Path

import pytest

from tests.interop.client_kinds import JAVA_49, JAVA_54, ClientKind, launch_of
from tests.interop.client_program import ClientProgram, StepFailed, message, running_client
from tests.interop.test_replication_pairs import our_name_server, our_program
from tests.waiting import wait_until

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(400)]

TOPIC, GROUP = "Orders", "Shop"
SECONDS = 120.0  # clients look at the name server every 30 s


def send(client: ClientProgram, bodies: list[str]) -> None:
    sent = client.send("sync", *(message(TOPIC, body.encode()) for body in bodies))
    assert {one.status for one in sent} == {"SEND_OK"}


def send_when_found(client: ClientProgram, bodies: list[str]) -> None:
    """The master is back on another port, which the client hears of in at most 30 s."""

    def is_sent() -> bool:
        try:
            send(client, bodies)
        except StepFailed:
            time.sleep(1)
            return False
        return True

    wait_until(is_sent, seconds=SECONDS)


def await_bodies(client: ClientProgram, consumer: str, bodies: list[str]) -> None:
    def seen() -> set[str]:
        return {delivery.body.decode() for delivery in client.deliveries(consumer)}

    wait_until(lambda: set(bodies) <= seen(), seconds=SECONDS)


@pytest.mark.parametrize("kind", [JAVA_54, JAVA_49], ids=str)
def test_a_java_consumer_goes_on_at_the_slave_and_comes_back(tmp_path: Path, kind: ClientKind) -> None:
    launch = launch_of(kind)
    if isinstance(launch, str):
        pytest.skip(f"no {kind} client: {launch}")
    first, second, third = ([f"{part}-{number}" for number in range(20)] for part in ("first", "second", "third"))
    with (
        our_name_server(tmp_path) as names,
        our_program(tmp_path, "slave", "SLAVE", names, verbose=True) as slave,
        our_program(tmp_path, "master", "SYNC_MASTER", names) as master,
    ):
        slave.await_line("following master=")
        with running_client(launch.command(names, tmp_path), launch.environment, tmp_path) as client:
            send(client, first)
            client.consume("at the master", GROUP, TOPIC)
            await_bodies(client, "at the master", first)
            client.stop("at the master")
            send(client, second)
            master.kill()
            client.consume("at the slave", GROUP, TOPIC)
            await_bodies(client, "at the slave", second)
            with our_program(tmp_path, "master", "SYNC_MASTER", names):
                slave.await_line("following master=", count=2)
                send_when_found(client, third)
                await_bodies(client, "at the slave", third)
