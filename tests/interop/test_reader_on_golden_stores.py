"""The harness itself: StoreReader tells of the golden stores what their manifests say."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.golden_store import GOLDEN_STORES, GoldenStore
from tests.interop.apache import Apache
from tests.interop.rocketmq_store import KeyQuery, Line, read

pytestmark = pytest.mark.interop

IN_SHORT_MODE = ("5.4.0/killed", "4.9.7/killed")
EXTRA_SETTINGS: dict[str, dict[str, str]] = {
    "lmq": {"enableLmq": "true", "enableMultiDispatch": "true"},
    "cqext": {"enableConsumeQueueExt": "true", "mappedFileSizeConsumeQueueExt": "4096"},
    "crc": {"enabledAppendPropCRC": "true"},
}
NOT_IN_A_DECODED_MESSAGE = {"magic", "storedBodyLength", "storedBody", "propertiesString", "msgId", "offsetMsgId"}
DERIVED = {"uniqKey", "keys", "kind", "afterRecoveredEnd"}


@pytest.mark.parametrize(
    "golden",
    [pytest.param(g, id=str(g), marks=[] if str(g) in IN_SHORT_MODE else pytest.mark.slow) for g in GOLDEN_STORES],
)
def test_rocketmq_reads_its_golden_store_as_the_manifest_says(
    golden: GoldenStore, tmp_path: Path, apache_of_version: Callable[[str], Apache]
) -> None:
    apache = apache_of_version(golden.version)
    asked = [line for line in golden.lines("index") if line["kind"] == "queryMessage"]
    queries = [KeyQuery(q["topic"], q["key"], q["maxNum"], q["begin"], q["end"], q.get("indexType")) for q in asked]
    known_times = golden.lines("timestamps")
    times = [{"topic": q["topic"], "queueId": q["queueId"], "timestamps": _column(q, 0)} for q in known_times]

    contents = read(
        apache,
        golden.extract(tmp_path),
        golden.config_of_broker(),
        queries=queries,
        times=times,
        settings=EXTRA_SETTINGS.get(golden.name, {}),
    )

    expected = golden.json("store")
    assert contents.physical_range == (expected["minPhyOffset"], expected["maxPhyOffset"])
    assert _queues(contents.of("queue")) == _queues(golden.lines("queues"))
    assert contents.query_results == [line["physicalOffsets"] for line in asked]
    assert [_column(line, 1) for line in contents.of("times")] == [_column(line, 1) for line in known_times]
    by_offset = {line["physicalOffset"]: line for line in golden.messages() if line["kind"] == "message"}
    assert contents.messages
    for message in contents.messages:
        assert _fields(message) == _fields(by_offset[message["physicalOffset"]])


def _queues(lines: list[Line]) -> dict[str, object]:
    """Per queue its range; the entries too where they are the plain 20 bytes."""
    return {
        f"{line['topic']}/{line['queueId']}": (
            line["min"],
            line["max"],
            json.dumps(line["entries"]) if _is_simple(line) else "",
        )
        for line in lines
    }


def _column(line: Line, place: int) -> list[int]:
    """Of the rows [timestamp, offset (LOWER), UPPER]."""
    return [row[place] for row in line["results"]]


def _is_simple(line: Line) -> bool:
    return bool(line.get("simple", line.get("type") == "SimpleCQ"))


def _fields(line: Line) -> Line:
    return {name: value for name, value in line.items() if name not in NOT_IN_A_DECODED_MESSAGE | DERIVED}
