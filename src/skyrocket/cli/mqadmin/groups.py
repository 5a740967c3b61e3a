"""mqadmin's commands of consumer groups."""

from dataclasses import replace
from typing import Any

from skyrocket.cli.mqadmin.java_text import group_fields, group_text
from skyrocket.cli.mqadmin.options import Given
from skyrocket.cli.mqadmin.printing import Printer
from skyrocket.cli.mqadmin.targets import each_place, masters
from skyrocket.cli.mqadmin.topics import attribute_changes, file_bytes
from skyrocket.client import Admin, BrokerPlace
from skyrocket.client.admin.group_admin import GroupChange
from skyrocket.client.core.names import check_group
from skyrocket.errors import ConfigError
from skyrocket.fastjson import loads
from skyrocket.fastjson.bean import WrongShape, bean, tuple_of
from skyrocket.model.subscription_group import GroupRetryPolicy, SubscriptionGroup
from skyrocket.model.topic import DLQ_PREFIX, RETRY_PREFIX
from skyrocket.protocol.bodies.json_body import JsonBody

_GROUPS = JsonBody(tuple_of(bean(SubscriptionGroup)))
_FLAGS = {
    "consumeEnable": "may_consume",
    "consumeFromMinEnable": "may_consume_from_min",
    "consumeBroadcastEnable": "may_consume_broadcast",
    "consumeMessageOrderly": "consumes_orderly",
    "notifyConsumerIdsChanged": "notifies_of_members",
}
_NUMBERS = {
    "retryQueueNums": "retry_queues",
    "retryMaxTimes": "retry_max_times",
    "brokerId": "broker_id",
    "whichBrokerWhenConsumeSlowly": "broker_id_when_slow",
}


async def update_sub_group(admin: Admin, given: Given, out: Printer) -> None:
    """Creates a group; one that is there keeps what is not named (RocketMQ resets it)."""
    name = given["groupName"]
    check_group(name)
    changes = attribute_changes(given.text("attributes", ""))
    fields = _fields(given)
    shown: list[SubscriptionGroup] = []

    async def put(place: BrokerPlace) -> None:
        table = (await admin.group_table(broker=place.address)).popitem()[1]
        before = table.get(name)
        # RocketMQ's tool has these two off for a new group, although its broker has them on.
        base = before or SubscriptionGroup(name, may_consume_from_min=False, may_consume_broadcast=False)
        kept = {**base.attributes, **changes}
        after = replace(base, **fields, attributes={key: value for key, value in kept.items() if value is not None})
        await admin.apply_group_changes([GroupChange(place, before, after)])
        out.line(f"create subscription group to {place.address} success.")
        shown.append(after)

    await each_place(admin, await masters(admin, given, "brokerAddr", "clusterName"), put)
    if shown:
        out.text(group_text(shown[-1]))


def _fields(given: Given) -> dict[str, Any]:
    fields: dict[str, Any] = {field: given.is_true(option) for option, field in _FLAGS.items() if option in given}
    fields |= {field: given.number(option) for option, field in _NUMBERS.items() if option in given}
    if "groupRetryPolicy" in given:
        try:
            fields["retry_policy"] = bean(GroupRetryPolicy).read(loads(given["groupRetryPolicy"].encode()))
        except (WrongShape, ValueError) as error:
            raise ConfigError(f"--groupRetryPolicy is not a retry policy: {error}") from None
    return fields


async def update_sub_group_list(admin: Admin, given: Given, out: Printer) -> None:
    groups = _GROUPS.decode(file_bytes(given["filename"]))

    async def put(place: BrokerPlace) -> None:
        await admin.put_groups(groups, broker=place.address)
        out.line(f"submit batch of group config to {place.address} success, please check the result later.")

    await each_place(admin, await masters(admin, given, "brokerAddr", "clusterName"), put)


async def delete_sub_group(admin: Admin, given: Given, out: Printer) -> None:
    name, with_offsets = given["groupName"], given.is_true("removeOffset")
    in_cluster = f" in cluster [{given['clusterName']}]" if "brokerAddr" not in given and "clusterName" in given else ""

    async def delete(place: BrokerPlace) -> None:
        await admin.delete_group(name, broker=place.address, with_offsets=with_offsets)
        out.line(f"delete subscription group [{name}] from broker [{place.address}]{in_cluster} success.")

    await each_place(admin, await masters(admin, given, "brokerAddr", "clusterName"), delete)
    if in_cluster:
        for topic in (RETRY_PREFIX + name, DLQ_PREFIX + name):
            await admin.delete_topic(topic, cluster=given["clusterName"])
            out.line(f"delete topic [{topic}] from cluster [{given['clusterName']}] success.")
            out.line(f"delete topic [{topic}] from NameServer success.")


async def get_consumer_config(admin: Admin, given: Given, out: Printer) -> None:
    for place, group in (await admin.group_configs(given["groupName"])).items():
        out.line(f"{'=' * 29}{place.cluster}:{place.broker_name}{'=' * 29}")
        shown = (("" if value == "null" else value) for _, value in group_fields(group))
        out.pairs("%-40s=  %s", zip((key for key, _ in group_fields(group)), shown, strict=True))


async def set_consume_mode(admin: Admin, given: Given, out: Printer) -> None:
    topic, group, mode = given["topicName"], given["groupName"], given["mode"].upper()
    share = given.number("popShareQueueNum", 0)
    if mode not in ("PULL", "POP"):
        raise ConfigError(f"--mode {mode} is neither PULL nor POP")

    async def put(place: BrokerPlace) -> None:
        await admin.set_consume_mode(group, topic, mode, pop_share_queues=share, broker=place.address)
        out.line(f"set consume mode to {place.address} success.")

    await each_place(admin, await masters(admin, given, "brokerAddr", "clusterName"), put)
    out.text(f"topic[{topic}] group[{group}] consume mode[{mode}] popShareQueueNum[{share}]")
