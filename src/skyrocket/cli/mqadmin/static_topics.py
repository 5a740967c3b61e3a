"""mqadmin's commands of static topics, which this tool does not plan: their mappings are RocketMQ's own affair."""

from typing import NoReturn

from skyrocket.cli.mqadmin.options import Given
from skyrocket.cli.mqadmin.printing import Printer
from skyrocket.client import Admin
from skyrocket.errors import SkyrocketError


class StaticTopicsNotOffered(SkyrocketError):
    """Nothing was changed."""


async def update_static_topic(_: Admin, given: Given, __: Printer) -> None:
    _refuse(given)


async def remapping_static_topic(_: Admin, given: Given, __: Printer) -> None:
    _refuse(given)


def _refuse(given: Given) -> NoReturn:
    raise StaticTopicsNotOffered(
        f"{given.command} of topic {given['topic']}: mappings of static topics are not made here, and Skyrocket's "
        "brokers do not serve static topics; nothing was changed. Use RocketMQ's own mqadmin with its brokers"
    )
