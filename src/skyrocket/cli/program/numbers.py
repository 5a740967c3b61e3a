"""The largest numbers that RocketMQ has room for: Java's int and long."""

from typing import Final

MOST_INT: Final = (1 << 31) - 1
MOST_LONG: Final = (1 << 63) - 1
