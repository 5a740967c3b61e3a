"""Parts that an operator adds by name: `accessValidators` and `brokerPlugins` say `module:attribute`, joined by `;`.

The module must be importable by the broker's Python: installed beside Skyrocket, or on PYTHONPATH. Docs:
docs/guides/access-control.md#own-checks-and-plug-ins.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from skyrocket.errors import ConfigError


def plug_ins(setting: str, names: str) -> list[Callable[..., Any]]:
    """What the names of a setting mean, in their order; raises ConfigError."""
    return [_found(setting, name.strip()) for name in names.split(";") if name.strip()]


def _found(setting: str, name: str) -> Callable[..., Any]:
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        raise ConfigError(f"{setting}: {name!r} is not of the form module:attribute, such as acme.checks:office_hours")
    try:
        found = getattr(import_module(module_name), attribute)
    except ImportError as error:
        raise ConfigError(
            f"{setting}: {module_name} cannot be imported ({error}); "
            "install it beside Skyrocket, or put its folder on PYTHONPATH"
        ) from error
    except AttributeError:
        raise ConfigError(f"{setting}: {module_name} has no {attribute!r}") from None
    if not callable(found):
        raise ConfigError(f"{setting}: {name} is {found!r}, but a function or class is needed")
    plug_in: Callable[..., Any] = found
    return plug_in
