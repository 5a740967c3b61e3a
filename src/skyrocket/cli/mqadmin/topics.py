"""mqadmin's commands of topics."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import orjson

from skyrocket.cli.mqadmin.java_text import front, time_ms, topic_text
from skyrocket.cli.mqadmin.options import Given
from skyrocket.cli.mqadmin.printing import Printer
from skyrocket.cli.mqadmin.targets import broker_of, each_place, masters
from skyrocket.client import Admin, Averagely, BrokerPlace, ClientError
from skyrocket.client.admin.name_server_admin import ORDER_NAMESPACE
from skyrocket.client.admin.topic_admin import TopicChange
from skyrocket.errors import ConfigError, SkyrocketError
from skyrocket.fastjson.bean import bean, tuple_of
from skyrocket.model.topic import DLQ_PREFIX, RETRY_PREFIX
from skyrocket.model.topic_config import SYS_FLAG_UNIT, SYS_FLAG_UNIT_SUBSCRIPTION, TopicConfig
from skyrocket.protocol.bodies.json_body import JsonBody

_TOPICS = JsonBody(tuple_of(bean(TopicConfig)))
_NEW_QUEUES = 8


async def update_topic(admin: Admin, given: Given, out: Printer) -> None:
    """Creates a topic; one that is there keeps what is not named (RocketMQ resets it)."""
    name = given["topic"]
    attributes = attribute_changes(given.text("attributes", ""))
    shown: list[TopicConfig] = []

    async def put(place: BrokerPlace) -> None:
        table = (await admin.topic_table(broker=place.address)).popitem()[1]
        before = table.get(name)
        after = _changed(before or TopicConfig(name, _NEW_QUEUES, _NEW_QUEUES), given)
        kept = {**(before.attributes if before else {}), **attributes}
        after = replace(after, attributes={key: value for key, value in kept.items() if value is not None})
        await admin.apply_topic_changes([TopicChange(place, before, after)])
        out.line(f"create topic to {place.address} success.")
        shown.append(after)

    await each_place(admin, await masters(admin, given, "brokerAddr", "clusterName"), put)
    if given.is_true("order"):
        await _set_order(admin, given, out, shown[-1])
    out.line(topic_text(shown[-1], _shown_attributes(attributes)))


def _changed(config: TopicConfig, given: Given) -> TopicConfig:
    changes: dict[str, int | bool] = {}
    for option, field in (("readQueueNums", "read_queues"), ("writeQueueNums", "write_queues"), ("perm", "permission")):
        if option in given:
            changes[field] = given.number(option)
    if "order" in given:
        changes["ordered"] = given.is_true("order")
    if "unit" in given or "hasUnitSub" in given:
        unit, subscribed = given.is_true("unit"), given.is_true("hasUnitSub")
        changes["sys_flag"] = unit * SYS_FLAG_UNIT + subscribed * SYS_FLAG_UNIT_SUBSCRIPTION
    return replace(config, **changes)  # type: ignore[arg-type]


def attribute_changes(text: str) -> dict[str, str | None]:
    """`+key=value,-key`; raises ConfigError."""
    found: dict[str, str | None] = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        key, equals, value = part[1:].partition("=")
        if part[0] == "+" and equals and key:
            found[key] = value
        elif part[0] == "-" and key and not equals:
            found[key] = None
        else:
            raise ConfigError(f"attribute {part!r} is neither +key=value nor -key")
    return found


def _shown_attributes(changes: Mapping[str, str | None]) -> dict[str, str]:
    return {f"-{key}" if value is None else f"+{key}": "" if value is None else value for key, value in changes.items()}


async def _set_order(admin: Admin, given: Given, out: Printer, config: TopicConfig) -> None:
    places = await masters(admin, given, "brokerAddr", "clusterName")
    named = [place if place.broker_name else await broker_of(admin, place.address) for place in places]
    conf = ";".join(f"{place.broker_name}:{config.write_queues}" for place in named)
    if "brokerAddr" in given:
        known = await admin.value(ORDER_NAMESPACE, given["topic"]) or ""
        others = [each for each in known.split(";") if each and each.split(":")[0] != named[0].broker_name]
        await admin.put_value(ORDER_NAMESPACE, given["topic"], ";".join([*others, conf]))
        out.line(f"set broker orderConf. isOrder=true, orderConf=[{conf}]")
    else:
        await admin.put_value(ORDER_NAMESPACE, given["topic"], conf)
        out.line(f"set cluster orderConf. isOrder=true, orderConf=[{conf}]")


async def update_topic_list(admin: Admin, given: Given, out: Printer) -> None:
    configs = _TOPICS.decode(file_bytes(given["filename"]))

    async def put(place: BrokerPlace) -> None:
        await admin.put_topics(configs, broker=place.address)
        out.line(f"submit batch of topic config to {place.address} success, please check the result later.")

    await each_place(admin, await masters(admin, given, "brokerAddr", "clusterName"), put)


def file_bytes(name: str) -> bytes:
    """Raises ConfigError."""
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise ConfigError(f"the file path {name} cannot be read: {error}") from None


async def delete_topic(admin: Admin, given: Given, out: Printer) -> None:
    topic, cluster = given["topic"], given["clusterName"]
    await admin.delete_topic(topic, cluster=cluster)
    out.line(f"delete topic [{topic}] from cluster [{cluster}] success.")
    out.line(f"delete topic [{topic}] from NameServer success.")


async def update_topic_perm(admin: Admin, given: Given, out: Printer) -> None:
    topic, permission = given["topic"], given.number("perm")
    configs = await admin.topic_configs(topic, broker=given.get("brokerAddr"))
    if "brokerAddr" not in given:
        cluster = given.get("clusterName")
        if cluster is None:
            raise ConfigError("Missing required option: [-b, -c]")
        wanted = set(await admin.brokers(cluster=cluster, with_slaves=False))
        configs = {place: config for place, config in configs.items() if place in wanted}
    for place, before in configs.items():
        if before.permission == permission:
            out.line("new perm equals to the old one!")
            continue
        after = replace(before, permission=permission)
        await admin.apply_topic_changes([TopicChange(place, before, after)])
        out.line(f"update topic perm from {before.permission} to {permission} in {place.address} success.")
        if "brokerAddr" in given:
            out.line(f"{topic_text(after)}.")


async def topic_list(admin: Admin, given: Given, out: Printer) -> None:
    topics = await admin.topics()
    if "clusterModel" not in given:
        out.rows("%s", ("#Topic",), ((topic,) for topic in topics))
        return
    titles = ("#Cluster Name", "#Topic", "#Consumer Group")
    out.table("%-20s  %-48s  %-48s", titles, ())
    for topic in topics:
        if topic.startswith((RETRY_PREFIX, DLQ_PREFIX)):
            continue
        try:
            clusters = sorted({broker.cluster or "" for broker in (await admin.route(topic)).data.brokers})
            groups = await admin.groups_of_topic(topic)
        except SkyrocketError:  # as RocketMQ: a topic whose broker is away is listed all the same
            clusters, groups = [""], []
        rows = [
            (front(cluster, 20), front(topic, 64), front(group, 64)) for cluster in clusters for group in groups or [""]
        ]
        out.rows("%-20s  %-64s  %-64s", titles, rows)


async def topic_route(admin: Admin, given: Given, out: Printer) -> None:
    data = (await admin.route(given["topic"])).data
    if "list" not in given:
        text = orjson.dumps(orjson.loads(_strict_route(data)), option=orjson.OPT_INDENT_2).decode()
        out.line(text)
        if not out.is_for_people:
            out.rows(
                "%s",
                ("brokerName", "readQueueNums", "writeQueueNums", "perm"),
                [(each.broker_name, each.read_queues, each.write_queues, each.permission) for each in data.queues],
            )
        return
    form = "%-45s %-32s %-50s %-10s %-11s %-5s"
    queues = {each.broker_name: each for each in data.queues}
    titles = ("#ClusterName", "#BrokerName", "#BrokerAddrs", "#ReadQueue", "#WriteQueue", "#Perm")
    rows = []
    for broker in data.brokers:
        if (each := queues.get(broker.broker_name)) is not None:
            addresses = "{" + ", ".join(f"{number}={address}" for number, address in broker.addresses.items()) + "}"
            row = broker.cluster, broker.broker_name, addresses, each.read_queues, each.write_queues, each.permission
            rows.append(row)
    out.table(form, titles, rows)
    out.line("-" * 158)
    totals = sum(row[3] for row in rows), sum(row[4] for row in rows)
    out.line(form % ("Total:", len(rows), "", *totals, ""))


def _strict_route(data: object) -> bytes:
    from skyrocket.protocol.bodies.route import TopicRoute, encode_route

    assert isinstance(data, TopicRoute)
    return encode_route(data, strict=True)


async def topic_status(admin: Admin, given: Given, out: Printer) -> None:
    statistics = await admin.topic_statistics(given["topic"])
    offsets = {queue: each for stats in statistics.values() for queue, each in stats.offsets.items()}
    rows = (
        (
            front(queue.broker_name, 32),
            queue.queue_id,
            each.min_offset,
            each.max_offset,
            time_ms(each.last_update_timestamp) if each.last_update_timestamp > 0 else "",
        )
        for queue, each in sorted(offsets.items())
    )
    titles = ("#Broker Name", "#QID", "#Min Offset", "#Max Offset", "#Last Updated")
    out.table("%-32s  %-4s  %-20s  %-20s    %s", titles, rows, row_form="%-32s  %-4d  %-20d  %-20d    %s")
    out.line()
    out.line(f"Topic Put TPS: {sum(each.put_tps or 0.0 for each in statistics.values())}")


async def topic_cluster_list(admin: Admin, given: Given, out: Printer) -> None:
    route = await admin.route(given["topic"])
    clusters = sorted({broker.cluster or "" for broker in route.data.brokers})
    out.rows("%s", ("#Cluster Name",), ((cluster,) for cluster in clusters))


async def allocate_mq(admin: Admin, given: Given, out: Printer) -> None:
    clients = [each.strip() for each in given["ipList"].split(",") if each.strip()]
    if not clients:
        raise ConfigError("--ipList names nobody")
    queues = await admin.queues(given["topic"])
    shares = {client: Averagely()("mqadmin", client, queues, clients) for client in clients}
    result = {
        client: [{"brokerName": q.broker_name, "queueId": q.queue_id, "topic": q.topic} for q in mine]
        for client, mine in shares.items()
    }
    out.line(orjson.dumps({"result": result}).decode())
    rows = [(client, queue["brokerName"], queue["queueId"]) for client, mine in result.items() for queue in mine]
    if not out.is_for_people:
        out.rows("%s", ("ip", "brokerName", "queueId"), rows)


async def update_order_conf(admin: Admin, given: Given, out: Printer) -> None:
    topic, method = given["topic"], given["method"]
    if method == "get":
        conf = await admin.value(ORDER_NAMESPACE, topic)
        if conf is None:
            raise ClientError(f"CODE: 22  DESC: No config item, Namespace: {ORDER_NAMESPACE} Key: {topic}")
        out.text(f"get orderConf success. topic=[{topic}], orderConf=[{conf}] ")
    elif method == "put":
        if not given.get("orderConf"):
            raise ConfigError("please set orderConf with option -v.")
        await admin.put_value(ORDER_NAMESPACE, topic, given["orderConf"])
        out.text(f"update orderConf success. topic=[{topic}], orderConf=[{given['orderConf']}]")
    elif method == "delete":
        await admin.delete_value(ORDER_NAMESPACE, topic)
        out.text(f"delete orderConf success. topic=[{topic}]")
    else:
        raise ConfigError(f"-m {method} is none of get, put, delete")
