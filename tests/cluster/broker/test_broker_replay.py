"""Every captured conversation with a real broker, played to ours: what ours says must be what the real one said.

Compared is, for each answer and each request of the broker's: code, flag, language, serialisation, remark, names and
order of the fields, their values (queue offsets, places in the log, ids, offsets, flags, …), and the body: records part
by part, JSON by its members. That captured frames decode and encode to the same bytes is shown elsewhere
(`tests/unit/protocol/test_golden_frames.py` and its neighbours).

Where ours does otherwise, one of two tables says why, and every entry must still be needed:

    NOT_YET       requests that the broker does not serve; they are not played
    DIFFERENCES   answers that differ on purpose, or because the captured moment cannot be had again
"""

import re
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from skyrocket.protocol.command import RemotingCommand
from tests.cluster.broker.conversation import Deed, conversation, conversations
from tests.cluster.broker.replay_comparison import Difference, Known, differences
from tests.cluster.broker.replay_player import Heard, playing
from tests.loops import run_bounded

NOT_YET: Final[dict[int, str]] = {}  # code → what is missing


@dataclass(frozen=True)
class Deliberate:
    """A pattern for differences, and why they are none."""

    where: str  # matches file:line
    codes: tuple[int, ...]  # of requests; none: all
    what: str
    reason: str
    theirs: str = ".*"  # what the real broker said
    remark: str = ""  # found in that of our answer

    def covers(self, difference: Difference) -> bool:
        return (
            (not self.codes or difference.code in self.codes)
            and re.match(self.where, difference.place) is not None
            and re.fullmatch(self.what, difference.what) is not None
            and re.fullmatch(self.theirs, str(difference.theirs), re.DOTALL) is not None
            and re.search(self.remark, difference.remark or "") is not None
        )


_BY_4_9: Final = r"(java49|admin49|badinput49)-"
_ANY: Final = ".*"
_PROXY: Final = "grpc54-proxy-remoting"
_SEND_CODES: Final = (10, 310, 320, 325)
_POPS: Final = (400, 401, 402, 200050, 200051, 200052, 200053, 200054, 200055, 200151)
_USERS: Final = (3001, 3003, 3004, 3005, 3006, 3007, 3008, 3010)

DIFFERENCES: Final = (
    # ── conversations whose beginning cannot be read off the answers ─────────────────────────────────────────────────
    Deliberate("acl[12]-", (), _ANY, "the real broker had users and rules, ours lets everybody in"),
    Deliberate("admin54-", _USERS, "code|remark", "the same: without access control there are no users to speak of"),
    Deliberate(f"java54-pop-|badinput54-pop|{_PROXY}", _POPS, _ANY, "what the group had popped before is not known"),
    Deliberate(_PROXY, (36,), "code|remark", "the same: what only pop showed is sent back", remark="look message by"),
    Deliberate("java54-timer-recall", (11,), _ANY, "when timers go off is a matter of the real clock"),
    # ── on purpose ───────────────────────────────────────────────────────────────────────────────────────────────────
    Deliberate(
        "",
        (14,),
        "code|remark|fields",
        "a new group reads an empty queue from 0 on, as with 4.9: 5.4 says 'not found', and the client passes over "
        "what arrives in between",
        theirs=r"22|Not found, V3_0_6.*|\[\]",
    ),
    Deliberate("badinput", (33,), "code|remark", "the middle of a record is no message; 5.4 answers without a body"),
    Deliberate(
        "badinput54-bkreq",
        (200053,),
        "fields",
        "a broken receipt is refused as such; in 5.4 it is an exception that nobody foresaw, and has no fields",
    ),
    Deliberate(
        _PROXY,
        (11, 310, 320),
        "field msgId|record's place",
        "a property with an empty value is kept as it was sent; 5.4 drops it, and the next record has an earlier place "
        "(what pop notes in the log moves the others as well)",
    ),
    # ── moments that do not come again ───────────────────────────────────────────────────────────────────────────────
    Deliberate(
        _PROXY + r".*:(227|228|238|239)$",
        (11, 310),
        "field queueOffset|record's (born|body)",
        "of two messages sent at once the second was stored first",
    ),
    Deliberate(
        "go-transaction",
        (10,),
        "field msgId",
        "the end of a transaction was written after the next message had come, ours is written before",
    ),
    Deliberate(
        "java54-timer-recall|" + _PROXY,
        (310,),
        "field queueOffset",
        "the queue of the timer was longer; what is put there to fill it would be delivered",
    ),
    Deliberate(
        "java54-(push-)?sqlfilter.*:end", (40,), "request", "the client left before it could hear that it had joined"
    ),
    Deliberate(
        "admin54-updateBrokerConfig-refused",
        (25,),
        "code|remark",
        "the directory of an open store cannot be changed; RocketMQ takes it without effect",
    ),
    # ── what RocketMQ 4.9.7 does otherwise than 5.4.0, whose ways ours are ───────────────────────────────────────────
    Deliberate(r"badinput49-bkreq.*:(2|5)$", (310,), "remark|fields", "a missing field is named"),
    Deliberate(r"badinput49-bkreq.*:17$", (310,), "code|remark|fields", "a message without body is refused"),
    Deliberate(
        _BY_4_9, _SEND_CODES, "fields", "the answer to a send has a transactionId, and the order that comes of it"
    ),
    Deliberate(
        _BY_4_9,
        _SEND_CODES,
        "field msgId",
        "records have other properties (MSG_REGION, TRACE_ON and WAIT are kept), so the next ones have other places",
    ),
    Deliberate(_BY_4_9, (11, 12, 33), "record's (size|properties)", "the same, as it is read"),
    Deliberate(_BY_4_9, (11,), "fields", "pull answers have topicSysFlag and groupSysFlag"),
    Deliberate(_BY_4_9, (34,), "fields", "heartbeat answers tell of heartbeats without subscriptions", theirs="None"),
    Deliberate(_BY_4_9, (14,), "code|remark|fields", "setZeroIfNotFound=false is heeded", remark="do not set to zero"),
    Deliberate(_BY_4_9, (29,), "field offset", "a time after the last message leads to the end of the queue"),
    Deliberate(_BY_4_9, (31,), "remark", "an empty remark instead of none", theirs="None"),
    Deliberate(_BY_4_9, (26,), "field version", "data versions have a stateVersion"),
    Deliberate(_BY_4_9, (208,), "body", "consume statistics have a pullOffset"),
    Deliberate(
        _BY_4_9,
        (60, 351, 352, 370, *_POPS),
        "code|remark|fields",
        "4.9 does not know these requests",
        theirs="3| request type .*|None",
    ),
    Deliberate(_BY_4_9, (11, 15, 17, 215, 310), "code", "illegal parameters have a code of their own", theirs="1"),
    Deliberate(_BY_4_9, (17, 310), "remark", "refusals of topic and queue tell more of the topic"),
    Deliberate(
        _BY_4_9, (15,), "code|remark|fields", "offsets of unknown topics and groups are refused", theirs="0|None"
    ),
    Deliberate(_BY_4_9, (200,), "code", "a group without body is no error", theirs="1"),
    Deliberate(_BY_4_9, (50,), "code|remark", "access control by a file of plain texts is no more"),
    Deliberate("badinput49-bk.jsonl:6$", (), "end", "an empty header is passed over; 4.9 ends the connection"),
)


def excuse(difference: Difference) -> Deliberate | None:
    return next((row for row in DIFFERENCES if row.covers(difference)), None)


@dataclass(frozen=True)
class Outcome:
    """What came of one conversation."""

    served: frozenset[int]
    heard: int
    left_out: Counter[int]
    differences: tuple[Difference, ...]


@cache
def outcome(name: str) -> Outcome:
    async def main(folder: str) -> Outcome:
        async with playing(Path(folder), name) as player:
            heard = await player.play(NOT_YET)
            known = Known(player.stock.places, player.unique_keys)
            different = [each for one in heard for each in differences(one, name, known)]
            asked = Counter(step.code for step in player.steps if step.deed is Deed.ASKS_BROKER)
            left_out = Counter({code: count for code, count in asked.items() if code in NOT_YET})
            return Outcome(player.served, len(heard), left_out, tuple(different))

    with tempfile.TemporaryDirectory() as folder:
        return run_bounded(main(folder))


@pytest.mark.parametrize("name", conversations())
def test_our_broker_says_what_the_real_one_said(name: str) -> None:
    unexcused = [str(each) for each in outcome(name).differences if excuse(each) is None]
    assert unexcused == []


def test_what_is_not_served_yet_is_really_not_served(capsys: pytest.CaptureFixture[str]) -> None:
    outcomes = [outcome(name) for name in conversations()]
    asked = sum((each.left_out for each in outcomes), Counter[int]())
    with capsys.disabled():
        left_out = ", ".join(f"{count}×{code}" for code, count in sorted(asked.items()))
        sys.stdout.write(f"\nanswers compared: {sum(each.heard for each in outcomes)}; not served yet: {left_out}\n")
    stale = {code: reason for code, reason in NOT_YET.items() if code in outcomes[0].served}
    assert stale == {}, "these requests are served now: take them out of NOT_YET, so that they are compared"
    assert NOT_YET.keys() - asked.keys() == set(), "the captures do not show these requests: take them out of NOT_YET"


def test_every_deliberate_difference_is_still_one() -> None:
    used = Counter(excuse(each) for name in conversations() for each in outcome(name).differences)
    assert [f"{row.where} {row.codes} {row.what}: {row.reason}" for row in DIFFERENCES if row not in used] == []


def test_conversations_are_played_to_their_end() -> None:
    heard = {name: outcome(name).heard for name in conversations()}
    assert sum(heard.values()) >= 2000
    assert heard["java54-push-orderly.jsonl.gz"] == 83
    assert heard["admin54-queryMsgById-resend.jsonl"] == 5  # with what the broker asks of a consumer


def test_a_difference_is_seen() -> None:
    """The comparison itself: each part of an answer that is changed must be found."""
    (name,) = [name for name in conversations() if name.startswith("java54-send.")]
    step = next(step for step in conversation(name) if step.deed is Deed.IS_ANSWERED and step.code == 310)
    header, known = step.header, Known(set(), frozenset())
    fields = header["extFields"]

    def found(code: int = 0, fields: dict[str, str] = fields, remark: str | None = None, body: bytes = b"") -> set[str]:
        command = RemotingCommand(code, header["opaque"], header["flag"], fields, body, remark)
        return {each.what for each in differences(Heard(step, command, 1), name, known)}

    assert found() == set()
    assert found(code=1) == {"code"}
    assert found(remark="?") == {"remark"}
    assert found(body=b"{}") == {"presence of a body"}
    assert found(fields={**fields, "queueOffset": "77"}) == {"field queueOffset"}
    assert found(fields=dict(reversed(fields.items()))) == {"fields"}
    assert [each.what for each in differences(Heard(step, None, 1), name, known)] == ["words"]
