"""mqadmin's commands that write what a cluster has into files."""

import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import orjson

from skyrocket.cli.mqadmin.options import Given
from skyrocket.cli.mqadmin.printing import Printer
from skyrocket.cli.mqadmin.targets import each_place, masters
from skyrocket.cli.nouns.broker_rows import first_number, whole
from skyrocket.client import Admin, BrokerPlace
from skyrocket.errors import ConfigError, SkyrocketError
from skyrocket.fastjson import Dialect
from skyrocket.fastjson.bean import bean
from skyrocket.model.subscription_group import SubscriptionGroup
from skyrocket.model.system_groups import is_system_group
from skyrocket.model.topic import DLQ_PREFIX, HALF_TOPIC, RETRY_PREFIX, SCHEDULE_TOPIC, is_system_topic
from skyrocket.model.topic_config import TopicConfig
from skyrocket.protocol.codes import OUR_VERSION, version_name

_KEYS: Final = (
    "brokerClusterName brokerId brokerName brokerRole fileReservedTime filterServerNums flushDiskType maxMessageSize "
    "messageDelayLevel msgTraceTopicName slaveReadEnable traceOn traceTopicEnable useTLS autoCreateTopicEnable "
    "autoCreateSubscriptionGroup"
).split()
_CONFIG_TYPES: Final = ("topics", "subscriptionGroups", "consumerOffsets")


def _folder(given: Given) -> Path:
    return Path(given.get("filePath") or Path(tempfile.gettempdir()) / "rocketmq" / "export")


def _written(path: Path, content: Any) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS))
    except OSError as error:
        raise SkyrocketError(f"{path} cannot be written: {error}") from error
    return path


async def export_metadata(admin: Admin, given: Given, out: Printer) -> None:
    topics: dict[str, Any] = {}
    groups: dict[str, Any] = {}
    system = await _named_after_brokers(admin)

    async def add(place: BrokerPlace) -> None:
        (table,) = (await admin.topic_table(broker=place.address)).values()
        for name, config in table.items():
            if name not in system and _is_exported(name, with_special="specialTopic" in given):
                _add_topic(topics, name, config)
        (groups_there,) = (await admin.group_table(broker=place.address)).values()
        for name, group in groups_there.items():
            if not is_system_group(name):
                _add_group(groups, name, group)

    await each_place(admin, await masters(admin, given, "brokerAddr", "clusterName"), add)
    content: dict[str, Any] = {}
    if "subscriptionGroup" not in given or "topic" in given:
        content["topicConfigTable"] = topics
    if "topic" not in given:
        content["subscriptionGroupTable"] = groups
    content["exportTime"] = round(time.time() * 1000)
    name = "topic" if "topic" in given else "subscriptionGroup" if "subscriptionGroup" in given else "metadata"
    out.line(f"export {_written(_folder(given) / f'{name}.json', content)} success")


async def _named_after_brokers(admin: Admin) -> set[str]:
    """Topics that brokers name after themselves and their clusters."""
    return {name for place in await admin.brokers() for name in (place.cluster, place.broker_name)}


def _is_exported(name: str, *, with_special: bool) -> bool:
    if is_system_topic(name) or name.endswith("_REPLY_TOPIC"):
        return False
    return with_special or not name.startswith((RETRY_PREFIX, DLQ_PREFIX))


def _add_topic(topics: dict[str, Any], name: str, config: TopicConfig) -> None:
    shown: Any = bean(TopicConfig).write(config, Dialect.COMPACT)
    if name in topics:
        for key in ("readQueueNums", "writeQueueNums"):
            shown[key] += topics[name][key]
    topics[name] = shown


def _add_group(groups: dict[str, Any], name: str, group: SubscriptionGroup) -> None:
    shown: Any = bean(SubscriptionGroup).write(group, Dialect.COMPACT)
    if name in groups:
        shown["retryQueueNums"] += groups[name]["retryQueueNums"]
    groups[name] = shown


async def export_configs(admin: Admin, given: Given, out: Printer) -> None:
    places = await admin.brokers(cluster=given["clusterName"])
    configs: dict[str, dict[str, str]] = {}

    async def add(place: BrokerPlace) -> None:
        (settings,) = (await admin.broker_settings(broker=place.address)).values()
        configs[place.broker_name] = {key: settings[key] for key in _KEYS if key in settings}

    await each_place(admin, [place for place in places if place.is_master], add)
    scale = {
        "namesrvSize": len(admin.name_servers()),
        "masterBrokerSize": sum(place.is_master for place in places),
        "slaveBrokerSize": sum(not place.is_master for place in places),
    }
    path = _written(_folder(given) / "configs.json", {"brokerConfigs": configs, "clusterScale": scale})
    out.text(f"export {path} success")


async def export_metrics(admin: Admin, given: Given, out: Printer) -> None:
    report: dict[str, Any] = {}
    tps: dict[str, float] = {}
    day: dict[str, int] = {}
    system = await _named_after_brokers(admin)

    async def add(place: BrokerPlace) -> None:
        report[place.broker_name] = found = await _metrics(admin, place, system)
        for key, value in found["runtimeQuota"]["tps"].items():
            total = "total" + key[0].upper() + key[1:]
            tps[total] = tps.get(total, 0.0) + value
        for key, value in found["runtimeQuota"]["oneDayNum"].items():
            day[key] = day.get(key, 0) + value

    await each_place(admin, await admin.brokers(cluster=given["clusterName"], with_slaves=False), add)
    totals = {"totalTps": tps, "totalOneDayNum": day}
    path = _written(_folder(given) / "metrics.json", {"evaluateReport": report, "totalData": totals})
    out.text(f"export {path} success")


async def _metrics(admin: Admin, place: BrokerPlace, system: set[str]) -> dict[str, Any]:
    (info,) = (await admin.runtime_info(broker=place.address)).values()
    (settings,) = (await admin.broker_settings(broker=place.address)).values()
    (table,) = (await admin.topic_table(broker=place.address)).values()
    (groups,) = (await admin.group_table(broker=place.address)).values()
    half = await admin.statistics("TOPIC_PUT_NUMS", HALF_TOPIC, broker=place.address)
    delayed = await admin.statistics("TOPIC_PUT_NUMS", SCHEDULE_TOPIC, broker=place.address)
    own = [name for name in groups if not is_system_group(name)]
    return {
        "runtimeEnv": {
            "cpuNum": settings.get("clientCallbackExecutorThreads"),
            "totalMemKBytes": info.get("totalMemKBytes"),
        },
        "runtimeQuota": {
            "diskRatio": {key: info.get(key) for key in ("commitLogDiskRatio", "consumeQueueDiskRatio")},
            "tps": {
                "normalInTps": first_number(info.get("putTps")) or 0.0,
                "normalOutTps": first_number(info.get("getTransferredTps")) or 0.0,
                "transInTps": half.minute.tps,
                "scheduleInTps": delayed.minute.tps,
            },
            "oneDayNum": {
                "normalOneDayInNum": _yesterday(info, "Put"),
                "normalOneDayOutNum": _yesterday(info, "Get"),
                "transOneDayInNum": half.day.sum or half.hour.sum or half.minute.sum,
                "scheduleOneDayInNum": delayed.day.sum or delayed.hour.sum or delayed.minute.sum,
            },
            "messageAverageSize": info.get("putMessageAverageSize"),
            "topicSize": sum(name not in system and _is_exported(name, with_special=False) for name in table),
            "groupSize": len(own),
        },
        "runtimeVersion": {
            "rocketmqVersion": version_name(OUR_VERSION),
            "clientInfo": sorted(await _client_versions(admin, own)),
        },
    }


def _yesterday(info: Mapping[str, str], kind: str) -> int:
    return whole(info, f"msg{kind}TotalTodayMorning") - whole(info, f"msg{kind}TotalYesterdayMorning")


async def _client_versions(admin: Admin, groups: list[str]) -> set[str]:
    found: set[str] = set()
    for group in groups:
        try:
            members = await admin.consumer_connections(group)
        except SkyrocketError:  # nobody is there
            continue
        found |= {f"{each.language}%{version_name(each.version)}" for each in members.connections}
    return found


# ── RocksDB ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def rocks_db_config_to_json(admin: Admin, given: Given, out: Printer) -> None:
    """Asks brokers to write files of their own, or reads a directory here."""
    kinds = [given["configType"]] if "configType" in given else list(_CONFIG_TYPES)
    for kind in kinds:
        if kind not in _CONFIG_TYPES:
            raise ConfigError(f"Invalid configType: {kind} please input topics/subscriptionGroups/consumerOffsets ")
    if "configPath" in given:
        out.line("Use [local mode] load rocksdb to print or export file ")
        content = _read_local(Path(given["configPath"]), kinds[0])
        if "exportFile" in given:
            out.line(f"export {_written(Path(given['exportFile']), content)} success")
        else:
            _print_local(content, out, as_json=given.is_true("jsonEnable", default=True))
        return

    asked = "broker" if "cluster" not in given else "all brokers in cluster"
    out.line(f"Use [rpc mode] call {asked} to export to json file ")

    async def export(place: BrokerPlace) -> None:
        await admin.export_key_value_configs(kinds, broker=place.address)

    await each_place(admin, await masters(admin, given, "brokerAddr", "cluster"), export)
    out.text("broker export done.")


async def export_metadata_in_rocks_db(_: Admin, given: Given, out: Printer) -> None:
    kind = given["configType"]
    if kind not in _CONFIG_TYPES[:2]:
        raise ConfigError(f"Invalid config type={kind}, Options: topics,subscriptionGroups")
    _print_local(_read_local(Path(given["path"]), kind), out, as_json=given.is_true("jsonEnable"))


def _read_local(folder: Path, kind: str) -> dict[str, Any]:
    from skyrocket.repair.convert import read_configs

    path = folder / kind
    if not path.is_dir():
        raise ConfigError(f"RocksDB path is invalid: there is no directory {path}")
    configs = read_configs(path, f"config/{kind}")
    if kind == "topics":
        return {"topicConfigTable": configs.topics}
    if kind == "subscriptionGroups":
        return {"subscriptionGroupTable": configs.groups}
    return {"offsetTable": configs.offsets}


def _print_local(content: Mapping[str, Any], out: Printer, *, as_json: bool) -> None:
    if as_json:
        out.line(orjson.dumps(content, option=orjson.OPT_INDENT_2).decode())
        return
    for table in content.values():
        for number, (key, value) in enumerate(table.items(), 1):
            out.rows(
                "%d, Key: %s, Value: %s", ("number", "Key", "Value"), [(number, key, orjson.dumps(value).decode())]
            )
