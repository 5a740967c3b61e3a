"""Groups that brokers and tools of all releases use among themselves: lists for people leave them out."""

from typing import Final

from skyrocket.model.topic import is_system_topic

_PREFIX: Final = "CID_RMQ_SYS_"
_NAMES: Final = frozenset(
    {
        "TOOLS_CONSUMER",
        "FILTERSRV_CONSUMER",
        "SCHEDULE_CONSUMER",
        "__MONITOR_CONSUMER",
        "CLIENT_INNER_PRODUCER",
        "SELF_TEST_P_GROUP",
        "SELF_TEST_C_GROUP",
        "CID_ONS-HTTP-PROXY",
        "CID_ONSAPI_PERMISSION",
        "CID_ONSAPI_OWNER",
        "CID_ONSAPI_PULL",
        "CID_SYS_RMQ_TRANS",
        "CID_DefaultHeartBeatSyncerTopic",
    }
)


def is_system_group(name: str) -> bool:
    """Whether no application consumes with it."""
    return name in _NAMES or name.startswith(_PREFIX) or is_system_topic(name)
