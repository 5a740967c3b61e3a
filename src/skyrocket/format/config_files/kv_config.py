"""`kvConfig.json` of the name server: settings by namespace, such as which topics are strictly ordered."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from skyrocket.format.config_files.json_file import JsonFile


@dataclass(frozen=True, slots=True)
class KvConfig:
    """Content of the file: namespace → key → value."""

    namespaces: Annotated[dict[str, dict[str, str]], "configTable"] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


_FILE = JsonFile(KvConfig)
decode, encode = _FILE.decode, _FILE.encode
