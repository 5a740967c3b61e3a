"""Epochs of a log whose master a controller chooses, and the two small files that such a broker keeps.

    epochFileCheckpoint    2                    how many epochs
                           1427219548           CRC of all that follows (0: not checked)
                           1-0                  epoch-first physical offset
                           4-81920
    brokerIdentity         DefaultCluster#broker-a#2
    brokerIdentity-temp    DefaultCluster#broker-a#2#10.0.0.1:10911;1700000000000

An epoch begins with an election. All bytes of a log from an epoch's start to the next one's were written by one master,
so two logs that both have an epoch with the same start are equal from there to where the shorter one of them ends it.
"""

import itertools
from collections.abc import Sequence
from typing import Final, NamedTuple

from skyrocket.errors import DataError
from skyrocket.format.crc import checksum

_NOT_CHECKED: Final = 0
_FIELDS: Final = 3  # of brokerIdentity


class Epoch(NamedTuple):
    """From which physical offset on a master of this epoch wrote the log."""

    number: int
    start_offset: int


class ReplicaIdentity(NamedTuple):
    """Who a broker is in its set, by its controller's word; the check code only until that has confirmed it."""

    cluster_name: str
    broker_name: str
    broker_id: int
    check_code: str = ""


def encode_epochs(epochs: Sequence[Epoch]) -> bytes:
    """The text of epochFileCheckpoint."""
    lines = b"".join(b"%d-%d\n" % epoch for epoch in epochs)
    return b"%d\n%d\n%b" % (len(epochs), checksum(lines), lines)


def decode_epochs(data: bytes) -> tuple[Epoch, ...]:
    """Raises DataError for anything that RocketMQ would not have written."""
    try:
        count, crc, *lines = data.decode("ascii").splitlines()
        epochs = tuple(Epoch(*map(int, line.split("-"))) for line in lines)
        told = int(crc)
    except (ValueError, TypeError) as error:
        raise DataError(f"an epoch file has a number of epochs, a checksum, and lines as 4-81920: {error}") from None
    if len(epochs) != int(count):
        raise DataError(f"the epoch file tells of {count} epochs and has {len(epochs)}")
    if told != _NOT_CHECKED and told != checksum("".join(f"{line}\n" for line in lines).encode()):
        raise DataError("the checksum of the epoch file is wrong")
    for before, after in itertools.pairwise(epochs):
        if after.number <= before.number or after.start_offset < before.start_offset:
            raise DataError(f"epoch {after.number} at {after.start_offset} follows {before.number}: out of order")
    return epochs


def encode_identity(identity: ReplicaIdentity) -> bytes:
    """The text of brokerIdentity, or of brokerIdentity-temp."""
    fields = [identity.cluster_name, identity.broker_name, str(identity.broker_id)]
    return "#".join([*fields, identity.check_code] if identity.check_code else fields).encode()


def decode_identity(data: bytes) -> ReplicaIdentity:
    """Raises DataError."""
    fields = data.decode("utf-8", "replace").strip().split("#")
    if len(fields) not in (_FIELDS, _FIELDS + 1) or not fields[2].isdigit():
        raise DataError(f"a broker's identity is cluster#broker#id, not {data[:200]!r}")
    return ReplicaIdentity(fields[0], fields[1], int(fields[2]), fields[3] if len(fields) > _FIELDS else "")
