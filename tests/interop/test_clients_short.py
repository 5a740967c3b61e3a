"""The short mode of the client suite: the core of what applications do, with one start of each program."""

import shutil
from pathlib import Path

import pytest

from tests.interop.client_kinds import GO, JAVA_54, NODE, ClientKind, launch_of
from tests.interop.led_client import led_client

pytestmark = [pytest.mark.interop, pytest.mark.timeout(200)]

JAVA_CORE = (
    *("create-topic", "send-sync", "send-async", "send-oneway", "send-ordered", "send-batch", "send-delayed"),
    *("push-concurrent", "push-orderly", "tag-filter", "pull", "query-by-id", "query-by-key"),
)
SECOND_CORE = ("send-sync", "push-concurrent", "tag-filter")


def _run(kind: ClientKind, scenarios: tuple[str, ...], home: Path) -> None:
    launch = launch_of(kind)
    if isinstance(launch, str):
        pytest.skip(f"no {kind} client: {launch}")
    with led_client(launch, home) as led:
        for scenario in scenarios:
            led.run(scenario)


def test_the_java_client_sends_receives_and_asks(tmp_path: Path) -> None:
    _run(JAVA_54, JAVA_CORE, tmp_path)


def test_a_client_of_another_language_sends_and_receives(tmp_path: Path) -> None:
    tools = {GO: "go", NODE: "node"}
    ready = [kind for kind, tool in tools.items() if kind.is_cached() and shutil.which(tool)]
    if not ready:
        pytest.skip("neither the Go nor the Node client is in the cache; `make interop` fetches them")
    _run(ready[0], SECOND_CORE, tmp_path)
