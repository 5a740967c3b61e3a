"""What belongs to the broker, or to somebody else, cannot be had by a clever request."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from skyrocket.format.batch import BatchElement, encode_batch
from skyrocket.format.record import decode_records
from skyrocket.model.subscription_group import SubscriptionGroup
from skyrocket.protocol.bodies.groups import SUBSCRIPTION_GROUP
from skyrocket.protocol.bodies.subscription import ClientConfigCheck
from skyrocket.protocol.errors import MessageIllegal, NoPermission, SystemFailure
from skyrocket.protocol.requests.admin_broker import GetBrokerConfig, UpdateBrokerConfig
from skyrocket.protocol.requests.admin_groups import UpdateAndCreateSubscriptionGroup
from skyrocket.protocol.requests.admin_topics import UpdateAndCreateTopic
from skyrocket.protocol.requests.offsets import GetMinOffset
from skyrocket.protocol.requests.pop import AckMessage, PopMessage
from tests.cluster.broker.broker_fixture import TOPIC, message, running_broker

PLAIN = "UNIQ_KEY\x010A0000010A0A18B4AAC20000000000\x02"


@pytest.mark.parametrize("name", ["INNER_NUM", "INNER_BASE"])
async def test_a_producer_cannot_set_the_properties_of_a_batch_that_the_broker_keeps(tmp_path: Path, name: str) -> None:
    async with running_broker(tmp_path) as given:
        for _ in range(2):  # the second looks like one that was seen before
            await given.send(properties=PLAIN)
            with pytest.raises(MessageIllegal, match=f"property {name} is the broker's own"):
                await given.send(properties=f"{PLAIN}{name}\x0170000\x02")
        with pytest.raises(MessageIllegal, match="inner batch"):
            await given.client.call(given.address, replace(message(), sys_flag=0x80), b"x")
        poisoned = encode_batch([BatchElement(0, b"x", f"{name}\x0170000\x02".encode())])
        with pytest.raises(MessageIllegal, match=f"property {name} is the broker's own"):
            await given.client.call(given.address, replace(message(), batch=True), poisoned)
        assert (await given.send(properties=f"{PLAIN}MY_INNER_NUM\x011\x02")).queue_offset == 2


async def test_clients_cannot_write_the_log_of_pop(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        for topic in ("rmq_sys_REVIVE_LOG_DefaultCluster", "rmq_sys_REVIVE_LOG_other"):
            with pytest.raises(NoPermission, match="is forbidden"):
                await given.send(topic=topic)


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("storePathRootDir", "the store is open there"),
        ("aclConfigPath", "the accounts were read from there"),
        ("accessValidators", "loaded at the start"),
        ("brokerPlugins", "loaded at the start"),
        ("brokerName", "routes"),
    ],
)
async def test_what_the_broker_was_built_on_is_not_changed_while_it_runs(tmp_path: Path, key: str, reason: str) -> None:
    async with running_broker(tmp_path) as given:
        shown = bytes((await given.client.call(given.address, GetBrokerConfig())).body)
        with pytest.raises(NoPermission, match=f"{key} cannot be changed while the broker runs: .*{reason}"):
            await given.client.call(given.address, UpdateBrokerConfig(), f"{key}=/elsewhere".encode())
        assert bytes((await given.client.call(given.address, GetBrokerConfig())).body) == shown
        same = next(line for line in shown.splitlines() if line.startswith(f"{key}=".encode()))
        await given.client.call(given.address, UpdateBrokerConfig(), same)  # who sends back what he was shown


async def test_a_pop_does_not_read_the_retry_topic_of_a_group_whose_name_is_made_of_both(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        await given.send(topic=TOPIC)
        body = SUBSCRIPTION_GROUP.encode(SubscriptionGroup("Shop_Orders"))
        await given.client.call(given.address, UpdateAndCreateSubscriptionGroup(), body)
        await given.send(b"of Shop_Orders", topic="%RETRY%Shop_Orders")
        pop = PopMessage(
            consumer_group="Shop",
            topic=TOPIC,
            queue_id=-1,
            max_msg_nums=32,
            invisible_time=60_000,
            poll_time=0,
            born_time=0,
            init_mode=0,
        )
        found = []
        for _ in range(20):  # which queues come first is drawn
            reply = await given.client.call(given.address, pop, accepted=frozenset({0, 209, 210}))
            found += [bytes(record.body) for record in decode_records(reply.body)]
            await asyncio.sleep(0)
        assert found == [b"x"]


async def test_an_acknowledgement_with_control_characters_in_its_group_is_refused_by_the_reason(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        await given.send()
        acknowledged = AckMessage(
            consumer_group="Shop\x02Evil", topic=TOPIC, queue_id=0, extra_info="0 1 60000 0 0 broker-a 0", offset=0
        )
        with pytest.raises(MessageIllegal, match="has control characters"):
            await given.client.call(given.address, acknowledged)


async def test_settings_that_are_not_text_are_refused_without_the_words_of_a_codec(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        with pytest.raises(SystemFailure, match="not UTF-8 text, see byte 9"):
            await given.client.call(given.address, UpdateBrokerConfig(), b"regionId=\xff\xfe")


async def test_a_batch_queue_that_was_never_written_begins_at_minus_one(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        batches = UpdateAndCreateTopic(
            topic="Batches",
            default_topic="TBW102",
            read_queue_nums=1,
            write_queue_nums=1,
            perm=6,
            topic_filter_type="SINGLE_TAG",
            order=False,
            attributes="+queue.type=BatchCQ",
        )
        await given.client.call(given.address, batches)
        await given.send()
        for topic, queue_id, expected in (("Batches", 0, -1), (TOPIC, 0, 0), (TOPIC, 3, 0), ("Nowhere", 0, 0)):
            reply = await given.client.call(given.address, GetMinOffset(topic=topic, queue_id=queue_id))
            assert reply.header.offset == expected, topic


def test_the_codes_of_tags_may_be_strings_as_the_go_client_writes_them() -> None:
    body = b'{"clientId":"go","group":"G","subscriptionData":{"topic":"T","subString":"a","codeSet":["97"]}}'
    read = ClientConfigCheck.decode(body)
    assert read.subscription is not None
    assert read.subscription.tag_codes == (97,)
