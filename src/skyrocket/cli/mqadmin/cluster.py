"""mqadmin's commands that look at brokers: rates, state, replication."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from skyrocket.cli.mqadmin.java_text import time_ms
from skyrocket.cli.mqadmin.options import Given
from skyrocket.cli.mqadmin.printing import Printer
from skyrocket.cli.mqadmin.targets import each_place, masters
from skyrocket.cli.nouns.broker_rows import first_number, whole
from skyrocket.cli.nouns.operator import name_failures
from skyrocket.cli.program.numbers import MOST_INT
from skyrocket.client import Admin, BrokerPlace
from skyrocket.errors import ConfigError
from skyrocket.protocol.bodies.replication import HaStatus

_BASE: Final = (
    "#Cluster Name",
    "#Broker Name",
    "#BID",
    "#Addr",
    "#Version",
    "#InTPS(LOAD)",
    "#OutTPS(LOAD)",
    "#Timer(Progress)",
    "#PCWait(ms)",
    "#Hour",
    "#SPACE",
    "#ACTIVATED",
)
_MORE: Final = ("#Cluster Name", "#Broker Name", "#InTotalYest", "#OutTotalYest", "#InTotalToday", "#OutTotalToday")


async def repeated(admin: Admin, given: Given, look: Callable[[], Awaitable[None]]) -> None:
    """Once, or with -i again and again until it is stopped; brokers that fail are named in every round."""
    if "interval" not in given:
        await look()
        return
    seconds = interval_of(given)
    while True:
        await look()
        name_failures(admin.failures)
        admin.failures.clear()
        await asyncio.sleep(seconds)


def interval_of(given: Given, default: int | None = None) -> int:
    """Raises ConfigError: without a pause brokers would be asked without end."""
    seconds = given.number("interval", default)
    if not 0 < seconds <= MOST_INT:
        raise ConfigError(f"--interval {seconds} is not a number of seconds from 1 to {MOST_INT}")
    return seconds


async def cluster_list(admin: Admin, given: Given, out: Printer) -> None:
    async def look() -> None:
        found = await admin.runtime_info(cluster=given.get("clusterName"))
        if "moreStats" in given:
            rows = [(place.cluster, place.broker_name, *_totals(info)) for place, info in found.items()]
            out.table("%-16s  %-32s %14s %14s %14s %14s", _MORE, rows)
            return
        out.table(
            "%-22s  %-22s  %-4s  %-22s %-16s  %16s  %30s  %-22s  %-11s  %-12s  %-8s  %-10s",
            _BASE,
            (_base(place, info) for place, info in found.items()),
            row_form="%-22s  %-22s  %-4s  %-22s %-16s  %16s  %30s  %-22s  %11s  %-12s  %-8s  %10s",
        )

    await repeated(admin, given, look)


def _totals(info: Mapping[str, str]) -> tuple[int, ...]:
    puts = [whole(info, f"msgPutTotal{when}") for when in ("YesterdayMorning", "TodayMorning", "TodayNow")]
    gets = [whole(info, f"msgGetTotal{when}") for when in ("YesterdayMorning", "TodayMorning", "TodayNow")]
    return puts[1] - puts[0], gets[1] - gets[0], puts[2] - puts[1], gets[2] - gets[1]


def _base(place: BrokerPlace, info: Mapping[str, str]) -> tuple[Any, ...]:
    oldest = whole(info, "earliestMessageTimeStamp")
    hours = (time.time() * 1000 - oldest) / 3_600_000 if "earliestMessageTimeStamp" in info else 0.0
    load = f"{info.get('sendThreadPoolQueueSize')},{info.get('sendThreadPoolQueueHeadWaitTimeMills')}ms"
    pull = f"{info.get('pullThreadPoolQueueSize')},{info.get('pullThreadPoolQueueHeadWaitTimeMills')}ms"
    acks = f"{info.get('ackThreadPoolQueueSize', 'N')},{info.get('ackThreadPoolQueueHeadWaitTimeMills', 'N')}ms"
    behind = f"{whole(info, 'timerReadBehind')}-{whole(info, 'timerOffsetBehind')}"
    timer = (
        f"{whole(info, 'timerCongestNum') / 10000:.1f}w, {first_number(info.get('timerEnqueueTps')) or 0.0:.1f}, "
        f"{first_number(info.get('timerDequeueTps')) or 0.0:.1f}"
    )
    out_tps = first_number(info.get("getTransferredTps"))
    return (
        place.cluster,
        place.broker_name,
        place.broker_id,
        place.address,
        info.get("brokerVersionDesc", ""),
        f"{first_number(info.get('putTps')) or 0.0:9.2f}({load})",
        f"{out_tps or 0.0:9.2f}({pull}|{acks})",
        f"{behind}({timer})",
        info.get("pageCacheLockTimeMills", ""),
        f"{hours:2.2f}",
        f"{first_number(info.get('commitLogDiskRatio')) or 0.0:.4f}",
        info.get("brokerActive", "false"),
    )


async def broker_status(admin: Admin, given: Given, out: Printer) -> None:
    async def show(place: BrokerPlace) -> None:
        (info,) = (await admin.runtime_info(broker=place.address)).values()
        if "brokerAddr" in given:
            out.pairs("%-32s: %s", sorted(info.items()))
        else:
            rows = [(place.address, key, value) for key, value in sorted(info.items())]
            out.rows("%-24s %-32s: %s", ("broker", "key", "value"), rows)

    await each_place(admin, await masters(admin, given, "brokerAddr", "clusterName", with_slaves=True), show)


async def ha_status(admin: Admin, given: Given, out: Printer) -> None:
    async def show(place: BrokerPlace) -> None:
        (status,) = (await admin.ha_status(broker=place.address)).values()
        _print_ha(place.address, status, out)

    async def look() -> None:
        await each_place(admin, await masters(admin, given, "brokerAddr", "clusterName"), show)

    await repeated(admin, given, look)


def _print_ha(address: str, status: HaStatus, out: Printer) -> None:
    if not status.is_master and status.client is not None:
        client = status.client
        out.text(f"\n#MasterAddr\t{client.master_address}\n#CommitLogMaxOffset\t{client.max_offset}\n")
        out.line(f"#TransferSpeed(KB/s)\t{client.transferred_bytes_per_second / 1024:.2f}")
        out.line(f"#LastReadTime\t{time_ms(client.last_read_timestamp)}")
        out.line(f"#LastWriteTime\t{time_ms(client.last_write_timestamp)}")
        out.line(f"#MasterFlushOffset\t{client.master_flush_offset}")
        return
    out.text(f"\n#MasterAddr\t{address}\n#MasterCommitLogMaxOffset\t{status.master_max_offset}\n")
    out.text(f"#SlaveNum\t{len(status.connections)}\n#InSyncSlaveNum\t{status.in_sync_slaves}\n")
    titles = ("#SlaveAddr", "#SlaveAckOffset", "#Diff", "#TransferSpeed(KB/s)", "#Status", "#TransferFromWhere")
    rows = [
        (
            each.address,
            each.slave_ack_offset,
            each.lag_bytes,
            each.transferred_bytes_per_second / 1024,
            "OK" if each.in_sync else "Fall Behind",
            each.transfer_from,
        )
        for each in status.connections
    ]
    out.table("%-32s  %-16s %16s %16s %16s %16s", titles, rows, row_form="%-32s  %-16d %16d %16.2f %16s %16d")


async def get_broker_epoch(admin: Admin, given: Given, out: Printer) -> None:
    async def look() -> None:
        for place, cache in (
            await admin.epochs(cluster=given.get("clusterName"), broker=given.get("brokerName"))
        ).items():
            out.text(f"\n#clusterName\t{cache.cluster_name}\n#brokerName\t{cache.broker_name}")
            out.text(f"\n#brokerAddr\t{place.address}\n#brokerId\t{cache.broker_id}")
            for number, each in enumerate(cache.epochs):
                end = cache.max_offset if number == len(cache.epochs) - 1 else each.end_offset
                entry = f"EpochEntry{{epoch={each.epoch}, startOffset={each.start_offset}, endOffset={end}}}"
                out.text(f"\n#Epoch: {entry}")
            out.line()

    await repeated(admin, given, look)
