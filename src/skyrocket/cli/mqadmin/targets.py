"""Whom a command of mqadmin means: `-b` an address, `-c` the masters of a cluster."""

from collections.abc import Awaitable, Callable, Sequence

from skyrocket.cli.mqadmin.options import Given
from skyrocket.client import Admin, BrokerPlace, NotFound
from skyrocket.errors import ConfigError, SkyrocketError


async def masters(
    admin: Admin, given: Given, broker: str, cluster: str, *, with_slaves: bool = False, all_if_none: bool = False
) -> list[BrokerPlace]:
    """The brokers meant, `-b` before `-c`; raises ConfigError when neither is given and not all are meant."""
    if broker in given:
        return await admin.brokers(broker=given[broker])
    if cluster not in given and not all_if_none:
        raise ConfigError("Missing required option: [-b, -c]")
    return await admin.brokers(cluster=given.get(cluster), with_slaves=with_slaves)


async def broker_of(admin: Admin, address: str) -> BrokerPlace:
    """The broker at an address, with its name; raises NotFound."""
    for place in await admin.brokers():
        if place.address == address:
            return place
    raise NotFound(f"no broker is registered at {address}: check the address, or name the cluster with -c")


def heading_of(place: BrokerPlace, places: Sequence[BrokerPlace]) -> str:
    """The address alone of a broker that was named by it, else also which of its set it is."""
    shown = place.address
    if place.broker_name and place.is_master:
        shown = f"Master: {place.address}"
    elif place.broker_name:
        own_masters = (each.address for each in places if each.is_master and each.broker_name == place.broker_name)
        shown = f"My Master: {next(own_masters, 'NO_MASTER')}=====Slave: {place.address}"
    return f"============{shown}============"


async def each_place(admin: Admin, places: Sequence[BrokerPlace], do: Callable[[BrokerPlace], Awaitable[None]]) -> None:
    """One after the other; those that fail beside others are remembered for the exit code."""
    failed: dict[str, SkyrocketError] = {}
    for place in places:
        try:
            await do(place)
        except SkyrocketError as error:
            failed[str(place)] = error
    if failed and len(failed) == len(places):
        raise next(iter(failed.values()))
    admin.failures.update(failed)
