"""The bits of a record's sysFlag."""

from skyrocket.model.message import Host

COMPRESSED = 0x001
MULTI_TAGS = 0x002
TRANSACTION_MASK = 0x00C
TRANSACTION_NONE = 0x000
TRANSACTION_PREPARED = 0x004
TRANSACTION_COMMIT = 0x008
TRANSACTION_ROLLBACK = 0x00C
BORN_HOST_V6 = 0x010
STORE_HOST_V6 = 0x020
NEED_UNWRAP = 0x040
INNER_BATCH = 0x080
COMPRESSION_TYPE_MASK = 0x700
COMPRESSION_TYPE_SHIFT = 8


def transaction_type(sys_flag: int) -> int:
    """One of TRANSACTION_NONE, _PREPARED, _COMMIT, _ROLLBACK."""
    return sys_flag & TRANSACTION_MASK


def host_widths(bits: int) -> dict[str, int]:
    """The bytes that both hosts take, by the two IPv6 bits of sysFlag."""
    return {"born_host": 20 if bits & 1 else 8, "store_host": 20 if bits & 2 else 8}


def host_flags(born_host: Host, store_host: Host) -> int:
    """The sysFlag bits that tell the width of both hosts."""
    born = BORN_HOST_V6 if len(born_host.address) == 16 else 0
    store = STORE_HOST_V6 if len(store_host.address) == 16 else 0
    return born | store
