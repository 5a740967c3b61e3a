"""mqadmin's commands that change brokers: settings, upkeep, cold reads, containers."""

import orjson

from skyrocket.cli.mqadmin.java_text import flag
from skyrocket.cli.mqadmin.options import Given
from skyrocket.cli.mqadmin.printing import Printer
from skyrocket.cli.mqadmin.targets import each_place, heading_of, masters
from skyrocket.client import Admin, BrokerPlace
from skyrocket.errors import ConfigError


async def get_broker_config(admin: Admin, given: Given, out: Printer) -> None:
    places = await masters(admin, given, "brokerAddr", "clusterName", with_slaves=True)

    async def show(place: BrokerPlace) -> None:
        (settings,) = (await admin.broker_settings(broker=place.address)).values()
        out.line(heading_of(place, places))
        out.pairs("%-50s=  %s", sorted(settings.items()))
        out.line()

    await each_place(admin, places, show)


async def update_broker_config(admin: Admin, given: Given, out: Printer) -> None:
    wanted = {given["key"]: given["value"]}
    everywhere = given.is_true("updateAllBroker")

    async def change(place: BrokerPlace) -> None:
        await admin.change_broker_settings(wanted, broker=place.address)
        out.line(f"update broker config success, {place.address}")

    places = await masters(admin, given, "brokerAddr", "clusterName", with_slaves=everywhere)
    await each_place(admin, places, change)


async def clean_expired_cq(admin: Admin, given: Given, out: Printer) -> None:
    await admin.clean_expired_queues(cluster=given.get("cluster"), broker=given.get("brokerAddr"))
    out.text("success")


async def clean_unused_topic(admin: Admin, given: Given, out: Printer) -> None:
    await admin.clean_unused_topics(cluster=given.get("cluster"), broker=given.get("brokerAddr"))
    out.text("success")


async def delete_expired_commit_log(admin: Admin, given: Given, out: Printer) -> None:
    await admin.delete_expired_logs(cluster=given.get("cluster"), broker=given.get("brokerAddr"))
    out.text("success")


async def reset_master_flush_offset(admin: Admin, given: Given, out: Printer) -> None:
    if "brokerAddr" not in given or "offset" not in given:
        raise ConfigError("Missing required options: b, o")
    await admin.reset_master_flush_offset(given.number("offset"), broker=given["brokerAddr"])
    out.line(f"reset master flush offset to {given.number('offset')} success")


async def set_commit_log_read_ahead_mode(admin: Admin, given: Given, out: Printer) -> None:
    mode = given["commitLogReadAheadMode"]
    if mode not in ("0", "1"):
        raise ConfigError("set the read mode error; 0 is default, 1 random read")

    places = await masters(admin, given, "brokerAddr", "clusterName", with_slaves=True)

    async def put(place: BrokerPlace) -> None:
        (said,) = (await admin.set_read_ahead(mode, broker=place.address)).values()
        out.line(f" {heading_of(place, places)}")
        out.line(f"commitLog set readAhead mode rstStr{said}")

    await each_place(admin, places, put)


async def get_cold_data_flow_ctr_info(admin: Admin, given: Given, out: Printer) -> None:
    places = await masters(admin, given, "brokerAddr", "clusterName", with_slaves=True)

    async def show(place: BrokerPlace) -> None:
        (text,) = (await admin.cold_data_limits(broker=place.address)).values()
        out.line(f" {heading_of(place, places)}")
        content = orjson.loads(text) if text else {}
        out.line(orjson.dumps(content, option=orjson.OPT_INDENT_2).decode())
        if not out.is_for_people:
            out.pairs("%s%s", [(key, value) for key, value in content.items()])

    await each_place(admin, places, show)


async def update_cold_data_flow_ctr_group_config(admin: Admin, given: Given, out: Printer) -> None:
    async def put(place: BrokerPlace) -> None:
        await admin.set_cold_data_limit(given["consumerGroup"], given.number("threshold"), broker=place.address)
        out.line(f"updateColdDataFlowCtrGroupConfig success, {place.address}")

    await each_place(admin, await masters(admin, given, "brokerAddr", "clusterName"), put)


async def remove_cold_data_flow_ctr_group_config(admin: Admin, given: Given, out: Printer) -> None:
    async def remove(place: BrokerPlace) -> None:
        await admin.remove_cold_data_limit(given["consumerGroup"], broker=place.address)
        out.line(f"remove broker cold read threshold success, {place.address}")

    await each_place(admin, await masters(admin, given, "brokerAddr", "clusterName"), remove)


async def export_pop_record(admin: Admin, given: Given, out: Printer) -> None:
    dry_run = given.is_true("dryRun")  # RocketMQ takes `-d false` for a dry run

    async def export(place: BrokerPlace) -> None:
        (settings,) = (await admin.broker_settings(broker=place.address)).values()
        if not dry_run:
            await admin.export_pop_records(broker=place.address)
        name = settings.get("brokerName")
        out.line(f"Export broker records, brokerName={name}, brokerAddr={place.address}, dryRun={flag(dry_run)}")

    await each_place(admin, await masters(admin, given, "brokerAddr", "clusterName", with_slaves=True), export)


async def check_rocksdb_cq_write_progress(admin: Admin, given: Given, out: Printer) -> None:
    since = given.number("checkFrom") if "checkFrom" in given else None

    async def check(place: BrokerPlace) -> None:
        result = await admin.check_queue_stores(given.get("topic") or "", since_ms=since, broker=place.address)
        if result.check_status == 3:
            reason = f"errInfo: {result.check_result}"
            out.line(f"{place.broker_name} check error, please check log... {reason}")
        else:
            out.line(f"{place.broker_name} check doing, please wait and get the result from log... ")

    await each_place(admin, await admin.brokers(cluster=given["cluster"], with_slaves=False), check)


async def add_broker(admin: Admin, given: Given, out: Printer) -> None:
    container = given["brokerContainerAddr"]
    await admin.add_broker_to_container(container, given["brokerConfigPath"])
    out.line(f"add broker to {container} success")


async def remove_broker(admin: Admin, given: Given, out: Printer) -> None:
    container, parts = given["brokerContainerAddr"], given["brokerIdentity"].split(":")
    if len(parts) != 3 or not parts[2].isdecimal():
        raise ConfigError(f"--brokerIdentity {given['brokerIdentity']} is not cluster:broker:id")
    await admin.remove_broker_from_container(container, parts[0], parts[1], int(parts[2]))
    out.line(f"remove broker from {container} success")
