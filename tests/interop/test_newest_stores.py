"""RocketMQ's newer kinds of stores: accelerated recovery on one of ours, RocksDB directories that RocketMQ wrote."""

import asyncio
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from skyrocket import Admin, Message, Producer
from skyrocket.fastjson import Dialect
from skyrocket.format.config_files import TOPICS
from skyrocket.repair.convert import convert
from tests.interop.apache import Apache
from tests.interop.our_store import found_lines, opened, put_all, read_everything, write_topics
from tests.interop.rocketmq_broker import running_broker
from tests.interop.samples import DELAYED_TOPIC, SMALL_FILES, samples
from tests.interop.test_broker_on_our_store import facts

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]

TOPIC, GROUP = "Orders", "Billing"
KINDS = {
    "v2": {"configManagerVersion": "v2"},
    "queues": {"storeType": "defaultRocksDB"},
}


@pytest.mark.parametrize("written", [True, False], ids=["with byte 40", "with zeros there"])
def test_accelerated_recovery_opens_a_store_on_which_we_were_killed(
    tmp_path: Path, apache_of_version: Callable[[str], Apache], written: bool
) -> None:
    """Without our number at byte 40 the same store is refused: the number is what opens it."""
    apache = apache_of_version("5.5.0")
    live, copy = tmp_path / "live", tmp_path / "copy"
    drafts = [draft for draft in samples(apache.version) if draft.topic != DELAYED_TOPIC]
    topics = sorted({draft.topic for draft in drafts if not draft.topic.startswith("%")})
    with opened(live, SMALL_FILES) as store:
        ours = put_all(store, drafts)
        store.dispatch()
        store.flush()
        store.flush_queues()
        more = put_all(store, drafts[:20])  # which no checkpoint knows
        shutil.copytree(live, copy)  # what a kill would have left
    assert (copy / "abort").exists()
    checkpoint = (copy / "checkpoint").read_bytes()
    assert struct.unpack_from(">q", checkpoint, 40)[0] > 0
    if not written:
        (copy / "checkpoint").write_bytes(checkpoint[:40] + bytes(8) + checkpoint[48:])
    write_topics(copy, topics, Dialect.V5_4)
    settings = {"enableAcceleratedRecovery": "true"}
    if not written:
        with (
            pytest.raises(AssertionError, match="does not listen"),
            running_broker(apache, copy, SMALL_FILES, settings),
        ):
            pass
        return
    with running_broker(apache, copy, SMALL_FILES, settings) as broker:
        pulled = broker.exchange(topics, [])
    assert facts(pulled.messages) == facts(line for line in (*ours, *more) if line["topic"] in topics)


@pytest.mark.parametrize("version", ["5.5.0", "5.4.0"])
@pytest.mark.parametrize("kind", KINDS)
async def test_what_rocketmq_kept_in_rocksdb_is_there_after_the_conversion(
    tmp_path: Path, apache_of_version: Callable[[str], Apache], version: str, kind: str
) -> None:
    apache = apache_of_version(version)
    with running_broker(apache, tmp_path, SMALL_FILES, KINDS[kind]) as broker:
        async with Admin(broker.name_server) as admin, Producer("Shop", broker.name_server) as producer:
            while not (await admin.cluster()).brokers:  # it listens before it registers
                await asyncio.sleep(0.1)
            await admin.create_topic(TOPIC, 2)
            await admin.create_group(GROUP)
            queues = await admin.queues(TOPIC)
            for number in range(30):
                await producer.send(Message(TOPIC, b"%d" % number), queue=queues[number % 2])
            for queue in queues:
                await admin.set_offset(GROUP, queue, 7 + queue.queue_id)
    assert not (tmp_path / "config" / "topics.json").exists()
    done = convert(tmp_path)
    assert done is not None
    assert TOPIC in TOPICS.decode((tmp_path / "config" / "topics.json").read_bytes()).topics
    with opened(tmp_path, SMALL_FILES) as store:
        found = [line for line in found_lines(read_everything(store)) if line["topic"] == TOPIC]
    assert len(found) == 30
    assert f'"{GROUP}"' in (tmp_path / "config" / "subscriptionGroup.json").read_text()
    offsets = (tmp_path / "config" / "consumerOffset.json").read_text()
    assert f"{TOPIC}@{GROUP}" in offsets
    assert "0:7" in offsets.replace('"', "").replace(" ", "")
    assert "1:8" in offsets.replace('"', "").replace(" ", "")
