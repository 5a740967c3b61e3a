"""How many bytes a second groups may read that are no longer in memory.

Kept until the next start and shown; reads are not slowed down by them. RocketMQ does so only with
`coldDataFlowControlEnable`, which is off by default there.
"""

import json
import logging
from typing import Final

from skyrocket.config.sources import parse_properties
from skyrocket.errors import ConfigError
from skyrocket.protocol.errors import SystemFailure

_logger = logging.getLogger(__name__)

_OF_A_GROUP: Final = 3 << 20  # RocketMQ's cgColdReadThreshold
_OF_ALL: Final = 100 << 20  # and globalColdReadThreshold


class ColdDataLimits:
    """Limits of single groups."""

    def __init__(self) -> None:
        self._by_group: dict[str, int] = {}

    def update(self, text: str) -> None:
        """Take `group=bytes` lines; a line that is none is passed over. Raises SystemFailure for no properties text."""
        try:
            pairs = parse_properties(text)
        except ConfigError as error:
            raise SystemFailure("string2Properties error") from error
        for group, value in pairs.items():
            try:
                self._by_group[group] = int(value)
            except ValueError:
                _logger.warning("a cold read limit is not a number group=%s value=%r", group, value)

    def remove(self, group: str) -> None:
        """Forget the limit of a group, if it has one."""
        self._by_group.pop(group, None)

    def text(self) -> str:
        """As JSON, in RocketMQ's order."""
        return json.dumps(
            {
                "runtimeTable": {},
                "configTable": self._by_group,
                "cgColdReadThreshold": _OF_A_GROUP,
                "globalColdReadThreshold": _OF_ALL,
                "globalAcc": 0,
            },
            separators=(",", ":"),
        )
