"""Which function answers a name of mqadmin: `topicRoute` is `topic_route` in the module of its family."""

import re
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import TypeAlias

from skyrocket.cli.mqadmin.commands import COMMANDS
from skyrocket.cli.mqadmin.options import Given
from skyrocket.cli.mqadmin.printing import Printer
from skyrocket.client import Admin

Handler: TypeAlias = Callable[[Admin, Given, Printer], Awaitable[None]]


def function_name(command: str) -> str:
    """`topicRoute` → `topic_route`, `clusterRT` → `cluster_rt`, `allocateMQ` → `allocate_mq`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", command).lower()


def handler_of(command: str) -> Handler:
    """The function that does it."""
    module = import_module(f"skyrocket.cli.mqadmin.{COMMANDS[command].family}")
    found: Handler = getattr(module, function_name(command))
    return found
