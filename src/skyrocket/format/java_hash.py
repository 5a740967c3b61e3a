"""Java's String.hashCode: tags, index keys and timer topics are stored as this hash. Many at once: `text_hashes`."""

_MASK = 0xFFFFFFFF


def unsigned_hash(text: str, start: int = 0) -> int:
    """Hash of a text in 0 … 2^32-1, continued from the hash of what stands before it."""
    h = start
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        h = (31 * h + (high << 8 | low)) & _MASK
    return h


def signed(h: int) -> int:
    """The 32-bit value as Java's signed int."""
    return h - (1 << 32) if h & 0x80000000 else h


def java_hash(text: str) -> int:
    """String.hashCode of a text."""
    return signed(unsigned_hash(text))
