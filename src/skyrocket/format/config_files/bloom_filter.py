"""The bloom filter by which RocketMQ marks in a consume-queue extension which groups' expressions match a message.

A group takes a few bits of a small bitmap; their positions come from MurmurHash3 of `group#topic`.
"""

import math
from dataclasses import dataclass

_U32, _U64 = (1 << 32) - 1, (1 << 64) - 1
_C1, _C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F


@dataclass(frozen=True, slots=True)
class BloomFilter:
    """Sized for a rate of false hits and a number of consumers; RocketMQ's settings give 3 functions and 112 bits."""

    error_percent: int = 20
    expected_consumers: int = 32

    @property
    def functions(self) -> int:
        return math.ceil(math.log(self.error_percent / 100, 0.5))

    @property
    def bits(self) -> int:
        """A whole number of bytes."""
        needed = math.ceil(self.expected_consumers * math.log2(100 / self.error_percent) * math.log2(math.e))
        return -(-needed // 8) * 8

    def positions(self, group: str, topic: str) -> tuple[int, ...]:
        """The bits of a group's subscription to a topic."""
        first = murmur3_first_half(f"{group}#{topic}".encode())
        low, high = _signed32(first), _signed32(first >> 32)
        return tuple(self._position(_signed32(low + i * high)) for i in range(1, self.functions + 1))

    def _position(self, combined: int) -> int:
        return (combined if combined >= 0 else ~combined) % self.bits


def _signed32(value: int) -> int:
    value &= _U32
    return value - (1 << 32) if value >> 31 else value


def murmur3_first_half(data: bytes) -> int:
    """The first 64 of the 128 bits of MurmurHash3 (x64 variant, seed 0), unsigned."""
    h1 = h2 = 0
    whole = len(data) // 16 * 16
    for at in range(0, whole, 16):
        h1 ^= _mixed_low(data[at : at + 8])
        h1 = ((_rotated(h1, 27) + h2) * 5 + 0x52DCE729) & _U64
        h2 ^= _mixed_high(data[at + 8 : at + 16])
        h2 = ((_rotated(h2, 31) + h1) * 5 + 0x38495AB5) & _U64
    h2 ^= _mixed_high(data[whole + 8 :])
    h1 ^= _mixed_low(data[whole : whole + 8])
    h1 ^= len(data)
    h2 ^= len(data)
    h1 = (h1 + h2) & _U64
    h2 = (h2 + h1) & _U64
    return (_avalanche(h1) + _avalanche(h2)) & _U64


def _mixed_low(part: bytes) -> int:
    return _rotated(int.from_bytes(part, "little") * _C1, 31) * _C2 & _U64


def _mixed_high(part: bytes) -> int:
    return _rotated(int.from_bytes(part, "little") * _C2, 33) * _C1 & _U64


def _rotated(value: int, bits: int) -> int:
    value &= _U64
    return (value << bits | value >> 64 - bits) & _U64


def _avalanche(value: int) -> int:
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        value = (value ^ value >> 33) * factor & _U64
    return value ^ value >> 33
