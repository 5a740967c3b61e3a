"""Who leads, where members stand in line: the first does, under the number by which it was placed.

ZooKeeper and etcd both number what is created, and remove what belongs to a session that is over. So a member's place
in the line is a node of its session, and whoever checks that the node is there checks that its owner leads.
"""

from collections.abc import Mapping
from typing import Final

import orjson

from skyrocket.controller.engines.engine import Member, Standing

NOBODY: Final = "no controller stands in line: an election begins"


def encode_member(member: Member) -> bytes:
    """What a node says."""
    return orjson.dumps({"id": member.controller_id, "address": member.address})


def decode_member(content: bytes) -> Member:
    """The opposite; a node of somebody else is shown as it is."""
    try:
        found = orjson.loads(content)
        return Member(str(found["id"]), str(found["address"]))
    except (ValueError, KeyError, TypeError):
        return Member("?", content[:100].decode("utf-8", "replace"))


def standing_of(line: Mapping[int, Member], own_number: int | None, sure_until: float | None = None) -> Standing:
    """How we stand, where members are in line under these numbers; our own place is ours until then at least."""
    if not line:
        return Standing(trouble=NOBODY)
    first = min(line)
    members = tuple(line[number] for number in sorted(line))
    return Standing(first if first == own_number else None, line[first], members, sure_until=sure_until)
