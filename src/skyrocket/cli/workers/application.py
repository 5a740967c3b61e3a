"""`module:name` made into consumers.

The name is a PushConsumer, a list of them, or a function without parameters that gives one of these; the function may
be async, or an async context manager that lives as long as the worker does (producers, connections).
"""

import contextlib
import importlib
import inspect
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from skyrocket.client import PushConsumer, blocking
from skyrocket.errors import ConfigError


def load(target: str, folder: Path) -> Any:
    """What `module:name` names, looked for in `folder` first; raises ConfigError."""
    module_name, colon, name = target.partition(":")
    if not colon or not module_name or not name:
        raise ConfigError(f"{target!r} names no application: write module:name, as shop.worker:consumer")
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise  # one of its own imports: the traceback says which
        raise ConfigError(
            f"there is no module {error.name} in {folder} nor among the installed ones: change to the folder "
            "that has it, or give --app-dir"
        ) from None
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            known = ", ".join(sorted(_consumers_in(vars(importlib.import_module(module_name))))) or "none"
            raise ConfigError(f"module {module_name} has no {name}; its consumers are: {known}") from None
    return found


def _consumers_in(names: dict[str, Any]) -> list[str]:
    kinds = (PushConsumer, blocking.PushConsumer)
    return [name for name, value in names.items() if isinstance(value, kinds)]


async def consumers_of(found: Any, stack: contextlib.AsyncExitStack, target: str) -> list[PushConsumer]:
    """The consumers that it is or gives; a context manager is left with the stack. Raises ConfigError."""
    if callable(found) and not isinstance(found, PushConsumer | blocking.PushConsumer):
        found = _called(found, target)
        if inspect.isawaitable(found):
            found = await found
        if isinstance(found, contextlib.AbstractAsyncContextManager) and not isinstance(found, PushConsumer):
            found = await stack.enter_async_context(found)
    listed = list(found) if isinstance(found, Sequence) and not isinstance(found, str) else [found]
    consumers = [each._inner if isinstance(each, blocking.PushConsumer) else each for each in listed]
    for each in consumers:
        if not isinstance(each, PushConsumer):
            raise ConfigError(
                f"{target} is {each!r}: give a PushConsumer, a list of them, or a function that makes them"
            )
    if not consumers:
        raise ConfigError(f"{target} is an empty list: give at least one PushConsumer")
    return consumers


def _called(function: Callable[[], Any], target: str) -> Any:
    try:
        inspect.signature(function).bind()
    except TypeError as error:
        raise ConfigError(f"{target} cannot be called without arguments: {error}") from None
    return function()
