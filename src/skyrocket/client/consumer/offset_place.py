"""Where a group's offsets are kept: with brokers if its members share the messages, else in files of its own."""

import os

from skyrocket.client.consumer.offset_store import OffsetStore
from skyrocket.client.consumer.remote_offsets import RemoteOffsets
from skyrocket.client.core.instance import ClientInstance


def offset_store(
    instance: ClientInstance,
    group: str,
    *,
    clustering: bool,
    new_group_from_zero: bool,
    directory: str | os.PathLike[str] | None = None,
) -> OffsetStore:
    """The store of one member; None: RocketMQ's directory."""
    if clustering:
        return RemoteOffsets(instance, group, new_group_from_zero=new_group_from_zero)
    from skyrocket.client.consumer.local_offsets import LocalOffsets  # files are for the few that broadcast

    return LocalOffsets(directory, instance.client_id, group)
