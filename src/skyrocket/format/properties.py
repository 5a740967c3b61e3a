"""The property string of a record: name 0x01 value 0x02 name 0x01 value 0x02 …

Releases differ in one thing: 4.9.1 – 5.1 leave out the last 0x02, all others write it. Readers accept both.
"""

from collections.abc import Mapping

from skyrocket.errors import MessageRefused

NAME_END = b"\x01"
PROPERTY_END = b"\x02"
MAX_BYTES = 32767
_MOST_DIGITS = 18  # all numbers of so many fit into a Java long


def encode_properties(properties: Mapping[str, str], *, trailing_separator: bool = True) -> bytes:
    """The stored text of a property map; refuses names and values that would break it."""
    for name, value in properties.items():
        if "\x01" in name or "\x02" in name or "\x01" in value or "\x02" in value:
            raise MessageRefused(f"property {name!r} contains 0x01 or 0x02, which separate properties")
    text = "\x02".join(f"{name}\x01{value}" for name, value in properties.items())
    try:
        encoded = text.encode()
    except UnicodeEncodeError as error:
        raise MessageRefused(f"properties hold half of a surrogate pair, which is not text: {error}") from error
    if encoded and trailing_separator:
        encoded += PROPERTY_END
    if len(encoded) > MAX_BYTES:
        raise MessageRefused(f"properties take {len(encoded)} bytes; the limit is {MAX_BYTES}")
    return encoded


def decode_properties(encoded: bytes) -> dict[str, str]:
    """The property map of a stored text; broken segments and empty values vanish, as they do in RocketMQ."""
    properties: dict[str, str] = {}
    for segment in encoded.decode("utf-8", "replace").split("\x02"):
        if len(segment) < 3:
            continue
        name, separator, value = segment.partition("\x01")
        if separator and name and value:
            properties[name] = value
    return properties


def find_property(encoded: bytes, name: bytes) -> bytes | None:
    """The value of one property without decoding the others; None when it is absent or empty.

    The last occurrence that has a value counts, as in a decoded map.
    """
    marker = name + NAME_END
    at = encoded.rfind(marker)
    while at >= 0:
        if at == 0 or encoded[at - 1] == 2:  # else it stands inside another property's name or value
            start = at + len(marker)
            end = encoded.find(PROPERTY_END, start)
            if value := encoded[start : len(encoded) if end < 0 else end]:
                return value
        at = encoded.rfind(marker, 0, at + len(marker) - 1)
    return None


def whole_number(text: bytes | None) -> int | None:
    """What a property says that is a whole number of 18 digits at most; None when it is none.

    Clients write what they like there, and `int` itself raises ValueError from some thousands of digits on.
    """
    return int(text) if text is not None and len(text) <= _MOST_DIGITS and text.isdigit() else None


def without_property(encoded: bytes, name: bytes) -> bytes:
    """The text less one property; other bytes stay as they are."""
    marker = name + NAME_END
    at = encoded.find(marker)
    while at >= 0:
        if at == 0 or encoded[at - 1] == 2:
            end = encoded.find(PROPERTY_END, at)
            encoded = encoded[:at] + (encoded[end + 1 :] if end >= 0 else b"")
            at = encoded.find(marker, at)
        else:
            at = encoded.find(marker, at + 1)
    return encoded


def with_property(encoded: bytes, name: bytes, value: bytes) -> bytes:
    """The text with one more property at its end; the separator before it is added when missing."""
    if encoded and not encoded.endswith(PROPERTY_END):
        encoded += PROPERTY_END
    return encoded + name + NAME_END + value + PROPERTY_END
