"""FastStream itself, in an environment of its own: a consumer of ours in the lifespan of its application."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from skyrocket.testing import LocalCluster
from tests import ROOT

HOME = ROOT / "var" / "faststream"
PAGE = (ROOT / "docs" / "guides" / "coming-from.md").read_text(encoding="utf-8")
HEAD = """
import asyncio
import contextlib
from collections.abc import AsyncIterator

from faststream import FastStream, TestApp
from faststream.redis import RedisBroker, TestRedisBroker

from skyrocket import ConsumeFromWhere, Producer, PushConsumer, PushConsumerSettings

first = PushConsumerSettings(consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)
consumer, broker, billed = PushConsumer("Billing", settings=first), RedisBroker(), asyncio.Event()


@consumer.on("Orders")
async def ours(body: dict) -> None:
    await broker.publish(body["number"], "invoices")


@broker.subscriber("invoices")
async def theirs(number: int) -> None:
    print("billed", number)
    billed.set()
"""
TAIL = """
async def main():
    async with Producer("Shop") as producer:
        await producer.send("Orders", {"number": 5})
    async with TestRedisBroker(broker), TestApp(app):  # FastStream's own stand-in for Redis
        await asyncio.wait_for(billed.wait(), 60)


asyncio.run(main())
print("ended in order")
"""


@pytest.fixture(scope="module")
def python() -> Path:
    """An interpreter with FastStream and our client; skips where they cannot be installed."""
    found = HOME / "bin" / "python"
    if not (HOME / "bin" / "faststream").exists():
        made = subprocess.run([sys.executable, "-m", "venv", str(HOME)], check=False, capture_output=True)
        install = [str(found), "-m", "pip", "install", "-q", "faststream[cli,redis]>=0.7", str(ROOT)]
        if made.returncode or subprocess.run(install, check=False, timeout=900).returncode:
            pytest.skip("FastStream cannot be installed here")
    return found


@pytest.mark.slow
@pytest.mark.timeout(1000)
def test_handlers_of_both_stand_side_by_side_as_the_page_says(
    python: Path, rocketmq: LocalCluster, tmp_path: Path
) -> None:
    found = re.search(r"<!-- run: tests/integration/test_faststream.py -->\n```python\n(.*?)^```", PAGE, re.M | re.S)
    assert found is not None
    (tmp_path / "side_by_side.py").write_text(f"{HEAD}\n\n{found[1]}\n{TAIL}")
    environment = {**os.environ, "NAMESRV_ADDR": rocketmq.name_server_address, "PYTHONPATH": str(ROOT / "src")}
    ended = subprocess.run(
        [str(python), str(tmp_path / "side_by_side.py")], env=environment, capture_output=True, text=True, timeout=120
    )
    assert ended.stdout == "billed 5\nended in order\n", ended.stderr
