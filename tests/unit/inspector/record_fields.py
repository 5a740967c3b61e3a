"""Which field of a record a byte belongs to, and whether a flip in it must be found (docs/reference/inspect.md)."""

from skyrocket.format import record

HEAD_FIELDS = (
    "size",
    "magic",
    "body CRC",
    "queue id",
    "flag",
    "queue offset",
    "physical offset",
    "sysFlag",
    "born timestamp",
    "born host",
    "store timestamp",
    "store host",
    "reconsume times",
    "prepared transaction offset",
    "body length",
)
UNPROTECTED = {
    "flag",
    "sysFlag",
    "born timestamp",
    "born host",
    "store timestamp",
    "store host",
    "reconsume times",
    "prepared transaction offset",
    "other properties",
}
# Queue entries hold a hash of the tags, index entries one of each key.
PROTECTED_PROPERTIES = (b"UNIQ_KEY", b"KEYS", b"TAGS")


def field_of(data: bytes, position: int, head: record.RecordHead, byte: int) -> str:
    """The field in which byte number `byte` of the record at `position` lies."""
    layout = record.head_struct(head.sys_flag)
    values = layout.unpack_from(data, position)
    if byte < layout.size:
        return _head_field(values, byte)
    body_end = layout.size + values[14]
    if byte < body_end:
        return "body"
    properties_at = head.size - len(head.properties)
    if byte < properties_at:
        return "topic" if byte < properties_at - 2 else "properties length"
    return _property(head.properties, byte - properties_at)


def _head_field(values: tuple[object, ...], byte: int) -> str:
    widths = {"i": 4, "q": 8}
    kinds = "iiiiiqqiq?q?iqi"
    end = 0
    for name, kind, value in zip(HEAD_FIELDS, kinds, values, strict=True):
        end += len(value) if isinstance(value, bytes) else widths[kind]
        if byte < end:
            return name
    raise AssertionError(byte)


def _property(properties: bytes, at: int) -> str:
    """The property whose name, separator or value holds a byte; its separators belong to it on both sides."""
    start = 0
    for segment in properties.split(b"\x02"):
        name = segment.partition(b"\x01")[0]
        if start - 1 <= at <= start + len(segment) and name in PROTECTED_PROPERTIES and segment != name + b"\x01":
            return "protected properties"
        start += len(segment) + 1
    return "other properties"
