"""The choices of `consume --format`, apart from what they do: --help needs only these."""

from enum import StrEnum


class Format(StrEnum):
    """How messages are shown."""

    TEXT = "text"
    JSON = "json"
    BODY = "body"
    TABLE = "table"
