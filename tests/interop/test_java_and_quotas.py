"""RocketMQ's own clients beyond a quota of ours: they hear which one it is, and go on when it allows them again."""

from pathlib import Path

import pytest

from tests.cluster.command_line import at
from tests.interop.client_kinds import JAVA_49, JAVA_54, ClientKind, launch_of
from tests.interop.client_program import ClientProgram, StepFailed, message, running_client
from tests.interop.observer import observing
from tests.interop.standalone import Standalone, running_standalone
from tests.waiting import wait_until

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(240)]

TOPIC, GROUP = "shop%Orders", "Billing"


def set_quota(server: Standalone, *arguments: str) -> None:
    done = at(server.name_server, "quota", *arguments)
    assert done.code == 0, done.errors


def refusal_of(client: ClientProgram, how: str = "sync", topic: str = TOPIC) -> str:
    """What a send is refused with; "" when it was stored."""
    try:
        sent = client.send(how, message(topic, b"x" * 100))
    except StepFailed as failed:
        return str(failed)
    assert [one.status for one in sent] == ["SEND_OK"]
    return ""


@pytest.mark.requirement("D035")
@pytest.mark.parametrize("kind", [JAVA_54, JAVA_49], ids=str)
def test_a_java_producer_hears_of_its_quota_and_goes_on_when_it_allows_it_again(
    tmp_path: Path, kind: ClientKind
) -> None:
    with running_standalone(tmp_path) as server, observing(server) as observer:
        observer.create_topic(TOPIC, 1)
        launch = launch_of(kind)
        if isinstance(launch, str):
            pytest.skip(f"no {kind}: {launch}")
        with running_client(launch.command(server.name_server, tmp_path), launch.environment, tmp_path) as client:
            assert refusal_of(client) == ""

            # one message of a hundred bytes fills the bucket of a rate: the next one is too early
            set_quota(server, "set", "--account", "*", "sendBytesPerSecond=20")
            refusals = [refusal_of(client) for _ in range(3)]
            assert any("account anonymous: 20 bytes/s (sendBytesPerSecond) exceeded" in each for each in refusals)
            wait_until(lambda: refusal_of(client) == "", "time has paid the debt")
            set_quota(server, "remove", "--account", "*")

            set_quota(server, "set", "--of-namespace", "shop", "topics=1")
            assert "namespace shop: 1 topic (topics) exceeded" in refusal_of(client, topic="shop%New")
            set_quota(server, "set", "--of-namespace", "shop", "storedBytes=100")
            assert "namespace shop: 100 bytes stored (storedBytes) exceeded" in refusal_of(client)
            set_quota(server, "set", "--of-namespace", "shop", "topics=2", "storedBytes=1000000")
            assert refusal_of(client) == ""

            stored = observer.max_offsets(TOPIC, 1)[0]
            set_quota(server, "set", "--account", "*", "readMessagesPerSecond=2")
            client.consume("reader", GROUP, TOPIC)
            wait_until(
                lambda: len(client.deliveries("reader")) == stored, "a consumer in debt waits, and loses nothing"
            )
