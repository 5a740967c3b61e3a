"""Address patterns of ACL 1.0: which peers need no signature.

| pattern | matches |
|---|---|
| empty | nobody |
| `*`, `*.*.*.*`, `*:*:*:*:*:*:*:*` | everybody |
| `10.0.0.1`, `fe80::1` | that address |
| `10.0.0.1,10.0.0.2` | each of them |
| `10.0.0.{1,2}`, `fe80::{1,2}` | the same with another last part |
| `10.0.*`, `10.0.*.*`, `10.0.3-9.*`, `10.0.0.3-9` | any part, or parts from … to; behind it only `*` |
"""

from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final, TypeAlias

from skyrocket.errors import ConfigError
from skyrocket.remoting.peer import Peer

Pattern: TypeAlias = Callable[[str], bool]

_EVERYBODY: Final = frozenset({"*", "*.*.*.*", "*:*:*:*:*:*:*:*"})


def host_of(peer: Peer) -> str:
    """Where a peer is; a socket for both families shows IPv4 addresses in disguise."""
    return peer.remote_address.host.removeprefix("::ffff:")


def address_pattern(text: str | None) -> Pattern:
    """A pattern as a question to an address; raises ConfigError."""
    text = (text or "").strip()
    if not text:
        return lambda _: False
    if text in _EVERYBODY:
        return lambda _: True
    if text.endswith("}"):
        return _one_of([*_last_parts(text)], text)
    if "," in text:
        return _one_of(text.split(","), text)
    if "*" in text or "-" in text:
        return _range(text)
    return _one_of([text], text)


def _last_parts(text: str) -> list[str]:
    head, brace, last = text[:-1].rpartition("{")
    if not brace or not head.endswith((".", ":")):
        raise _wrong(text, "braces stand for the last part of an address")
    return [head + part.strip() for part in last.split(",")]


def _one_of(texts: list[str], whole: str) -> Pattern:
    try:
        addresses = frozenset(ip_address(text.strip()) for text in texts)
    except ValueError as error:
        raise _wrong(whole, str(error)) from None
    return lambda peer: _parsed(peer) in addresses


def _range(text: str) -> Pattern:
    sign, base, most, count = (":", 16, 0xFFFF, 8) if ":" in text else (".", 10, 255, 4)
    parts = [part.strip() for part in text.split(sign)]
    spans: list[tuple[int, int]] = []
    for number, part in enumerate(parts):
        if part == "*" or "-" in part:
            if any(rest != "*" for rest in parts[number + 1 :]):
                raise _wrong(text, "behind * or a range there may only be *")
            spans.append((0, most) if part == "*" else _span(text, part, base, most))
            break
        spans.append(_span(text, f"{part}-{part}", base, most))
    if number == 0 or len(parts) > count:
        raise _wrong(text, "only parts behind the first may be * or a range")
    version = 6 if sign == ":" else 4

    def matches(peer: str) -> bool:
        address = _parsed(peer)
        if address is None or address.version != version:
            return False
        given = (int(part, base) for part in address.exploded.split(sign))
        return all(low <= part <= high for part, (low, high) in zip(given, spans, strict=False))

    return matches


def _span(text: str, part: str, base: int, most: int) -> tuple[int, int]:
    low, _, high = part.partition("-")
    try:
        span = int(low, base), int(high, base)
    except ValueError:
        raise _wrong(text, f"{part!r} is not a range of numbers") from None
    if not 0 <= span[0] <= span[1] <= most:
        raise _wrong(text, f"{part!r} is not a range" + (f" within 0 to {most:x}" if base == 16 else ""))
    return span


def _parsed(peer: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(peer)
    except ValueError:
        return None


def _wrong(text: str, reason: str) -> ConfigError:
    return ConfigError(f"{text!r} is not an address pattern: {reason}")
