"""Sends whose property texts differ in the unique key alone are stored and answered as those that are looked at."""

from pathlib import Path

import pytest

from skyrocket.broker.send.plain_send import KnownSend, PlainSends
from skyrocket.broker.send.waiting_queues import Postponed
from skyrocket.protocol.command import RemotingCommand
from skyrocket.store.queue_table import QueueKey
from skyrocket.testing.clock import FakeClock
from tests.cluster.broker.broker_fixture import SMALL, running_broker
from tests.cluster.broker.test_postponed_plain_sends import send, told

# Letters and digits of 32 characters; some spell a name for which a text is looked through.
KEYS = (
    "7F000001000100000000000000000001",
    "7F000001000100000000000000000002",
    "MSGMSGMSGCLUSTERDELAYTIMERPOPCK0",
    "DELAY000000000000000000000TRACE0",
    "TAGS0000000000000000000000000000",
    "WAIT00000000000000000000000false",
)
ODD_KEYS = (
    "short",
    "7F00000100010000000000000000000\\",
    '7F0000010001000000000000000000"1',
    "7F-0000100010000000000000000000é",
)
AROUND = (
    ("", ""),
    ("KEYS\1k1\2", "WAIT\1true\2"),
    ("KEYS\1k2\2", "WAIT\1true\2"),
    ("", "WAIT\1false\2"),
    ("", "DELAY\x013\2"),
    ("", "WAIT\1true"),
    ("", "CLUSTER\1far\2"),
    ("UNIQ_KEY\1other\2", ""),
)


async def test_known_texts_lead_to_the_same_record_and_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[bytes] = []
    look = PlainSends._look_at_text

    def counted(
        self: PlainSends, known: KnownSend, request: RemotingCommand, text: bytes, born: bytes
    ) -> tuple[bytes, QueueKey, bytes, Postponed | None] | None:
        looked_at.append(text)
        return look(self, known, request, text, born)

    monkeypatch.setattr(PlainSends, "_look_at_text", counted)
    sent = 0
    async with running_broker(tmp_path, store=SMALL, clock=FakeClock()) as given:
        for before, after in AROUND:
            for key in (*KEYS, *ODD_KEYS, *KEYS):
                text = f"{before}UNIQ_KEY\1{key}\2{after}"
                assert await told(given, send(text, short=True)) == await told(given, send(text, short=False)), text
                sent += 1
    assert sent - len(looked_at) > 4 * len(KEYS)  # else this has compared nothing
