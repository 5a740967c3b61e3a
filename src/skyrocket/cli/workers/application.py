"""`module:name` made into consumers.

The name is a PushConsumer, a list of them, or a function without parameters that gives one of these; the function may
be async, or an async context manager that lives as long as the worker does (producers, connections).
"""

import contextlib
import importlib
import inspect
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from skyrocket.client import PushConsumer, blocking
from skyrocket.errors import ConfigError, SkyrocketError


def load(target: str, folder: Path) -> Any:
    """What `module:name` names, looked for in `folder` first; raises ConfigError."""
    module_name, colon, name = target.partition(":")
    if not colon or not module_name or not name:
        raise ConfigError(f"{target!r} names no application: write module:name, as shop.worker:consumer")
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    found = _imported(module_name, folder)
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            known = ", ".join(sorted(_consumers_in(vars(importlib.import_module(module_name))))) or "none"
            raise ConfigError(f"module {module_name} has no {name}; its consumers are: {known}") from None
    return found


def _imported(module_name: str, folder: Path) -> Any:
    """The module; what it raises itself is told without our own frames, which are no help to its author."""
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise ConfigError(_told(module_name, error)) from None  # one of its own imports
        hint = f": write {module_name[:-3]}:…" if module_name.endswith(".py") else ", or give --app-dir"
        raise ConfigError(
            f"there is no module {error.name} in {folder} nor among the installed ones: change to the folder "
            f"that has it{hint}"
        ) from None
    except (SyntaxError, ImportError) as error:
        raise ConfigError(_told(module_name, error)) from None
    except Exception as error:  # noqa: BLE001 - whatever it does when it is imported
        raise SkyrocketError(_told(module_name, error)) from None  # it may work the next time


def _told(module_name: str, error: Exception) -> str:
    own = traceback.TracebackException(type(error), error, _after_import(error.__traceback__))
    return f"module {module_name} cannot be imported:\n{''.join(own.format()).rstrip()}"


def _after_import(steps: TracebackType | None) -> TracebackType | None:
    """The steps in the application itself, behind ours and the import system's."""
    while steps is not None and (
        steps.tb_frame.f_code.co_filename.startswith("<frozen importlib")
        or steps.tb_frame.f_code.co_filename in (__file__, importlib.__file__)
    ):
        steps = steps.tb_next
    return steps


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
