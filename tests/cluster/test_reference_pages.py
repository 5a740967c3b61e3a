"""What docs/start and docs/reference show is true: examples run, a record decodes, the requests are those served."""

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import pytest

from skyrocket.format.record import decode_records
from skyrocket.testing import LocalCluster
from tests import ROOT, protocol_page

DOCS = ROOT / "docs"
FIRST_STEPS = re.findall(
    r"^```python\n(.*?)^```", (DOCS / "start" / "first-message.md").read_text(), re.MULTILINE | re.DOTALL
)


@pytest.mark.parametrize("example", FIRST_STEPS)
def test_the_first_messages_are_sent_and_consumed(example: str, tmp_path: Path) -> None:
    with LocalCluster() as mq:
        program = example.replace("127.0.0.1:9876", mq.name_server_address)
        done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60)
        stored = mq.messages("Orders")
    assert done.returncode == 0, done.stderr
    assert len(stored) == 1


def test_the_table_of_requests_is_not_stale() -> None:
    page = (DOCS / "reference" / "protocol.md").read_text(encoding="utf-8")
    hint = "run: python -m tests.protocol_page --write docs/reference/protocol.md"
    assert protocol_page.table_of(page) == asyncio.run(protocol_page.table()), hint


def test_the_record_of_the_page_decodes() -> None:
    page = (DOCS / "reference" / "formats.md").read_text(encoding="utf-8")
    block = page.partition("<!-- a record -->")[2].partition("<!-- end of a record -->")[0]
    lines = re.findall(r"^ *((?:[0-9a-f]{2} {1,2})+)", block, re.MULTILINE)
    (message,) = decode_records(bytes.fromhex("".join(lines)))
    assert (message.topic, message.queue_id, message.queue_offset, message.body) == ("Orders", 2, 7, b"hello")
    assert (message.physical_offset, message.keys, message.tags) == (1024, ["o-1"], "paid")
