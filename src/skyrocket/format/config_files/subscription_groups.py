"""`subscriptionGroup.json`: every consumer group of the broker, and which operations are forbidden to it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from skyrocket.fastjson.bean import SINCE_5
from skyrocket.format.config_files.json_file import JsonFile
from skyrocket.model.data_version import DataVersion
from skyrocket.model.subscription_group import SubscriptionGroup


@dataclass(frozen=True, slots=True)
class SubscriptionGroups:
    """Content of the file; `forbidden` is group → topic → bitmap of operations."""

    data_version: DataVersion = field(default_factory=DataVersion)
    groups: Annotated[dict[str, SubscriptionGroup], "subscriptionGroupTable"] = field(default_factory=dict)
    forbidden: Annotated[dict[str, dict[str, int]], "forbiddenTable", SINCE_5] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


_FILE = JsonFile(SubscriptionGroups)
decode, encode = _FILE.decode, _FILE.encode
