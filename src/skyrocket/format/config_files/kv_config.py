"""`kvConfig.json` of the name server: settings by namespace, such as which topics are strictly ordered."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from skyrocket.fastjson import Dialect, dumps, loads
from skyrocket.fastjson.bean import bean

ORDER_TOPIC_NAMESPACE = "ORDER_TOPIC_CONFIG"


@dataclass(frozen=True, slots=True)
class KvConfig:
    """Content of the file: namespace → key → value."""

    namespaces: Annotated[dict[str, dict[str, str]], "configTable"] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


_KV_CONFIG = bean(KvConfig)


def decode(data: bytes) -> KvConfig:
    """The content of the file; raises DataError where it is not."""
    return _KV_CONFIG.read(loads(data))


def encode(config: KvConfig) -> bytes:
    """The bytes of the file: one line in every version."""
    return dumps(_KV_CONFIG.write(config, Dialect.COMPACT))
