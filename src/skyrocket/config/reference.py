"""The settings page, made from the settings: python -m skyrocket.config.reference > docs/reference/settings.md"""

import dataclasses
import sys
from typing import Any

from skyrocket.config.sections import BrokerConfig, ControllerConfig, NameServerConfig, StoreConfig, TlsConfig
from skyrocket.config.sources import text_of

SECTIONS: dict[str, type] = {
    "Store": StoreConfig,
    "Broker": BrokerConfig,
    "Name server": NameServerConfig,
    "Controller": ControllerConfig,
    "TLS of a server": TlsConfig,
}


def settings_page() -> str:
    """The page, one table per section."""
    lines = [
        "# Settings",
        "",
        "Keys are RocketMQ's; a key that RocketMQ does not have is marked *ours*. This page is generated: "
        "`python -m skyrocket.config.reference > docs/reference/settings.md`.",
    ]
    for title, section in SECTIONS.items():
        lines += ["", f"## {title}", "", "| Key | Default | Bounds | Meaning |", "|---|---|---|---|"]
        lines += [_row(field) for field in dataclasses.fields(section)]
    return "\n".join(lines) + "\n"


def _row(field: "dataclasses.Field[Any]") -> str:
    low, high = field.metadata["min"], field.metadata["max"]
    bounds = f"{'' if low is None else low} … {'' if high is None else high}" if (low, high) != (None, None) else ""
    ours = " *ours*" if field.metadata["ours"] else ""
    return f"| `{field.metadata['key']}`{ours} | {text_of(field.default)} | {bounds} | {field.metadata['help']} |"


if __name__ == "__main__":
    sys.stdout.write(settings_page())
