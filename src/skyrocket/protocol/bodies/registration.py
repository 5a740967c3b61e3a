"""REGISTER_BROKER: all topics of a broker, plain as JSON or packed and deflated.

    packed: 4 + n data version JSON · 4 number of topics, each 4 + n `name readQ writeQ perm filterType attributesJson`
            · 4 + n filter server list JSON · from 5.0 on: 4 number of mappings, each 4 + n JSON

The packed form loses the order flag and the system flag of topics.
"""

import zlib
from collections.abc import Iterator
from dataclasses import field
from struct import Struct
from struct import error as struct_error
from typing import Annotated

from skyrocket.errors import DataError
from skyrocket.fastjson import loads
from skyrocket.fastjson.bean import INTEGER, TEXT, TEXT_KEY, list_of, map_of
from skyrocket.model.data_version import DataVersion
from skyrocket.model.topic_config import TopicConfig
from skyrocket.protocol.bodies.json_body import BodyBase, body
from skyrocket.protocol.bodies.topics import DATA_VERSION, TopicTable
from skyrocket.protocol.codes import Version
from skyrocket.protocol.command import Body
from skyrocket.protocol.errors import MalformedBody

MAX_UNPACKED_BYTES = 32 << 20
MAX_TOPICS = 20_000

_SIZE = Struct(">i")
_ZLIB_MAGIC = 0x78
_ATTRIBUTES = map_of(TEXT_KEY, TEXT)


@body
class BrokerRegistration(BodyBase):
    """What a broker tells a name server; `filter_servers` is a relic, None when it was not given."""

    table: Annotated[TopicTable, "topicConfigSerializeWrapper"] = field(default_factory=TopicTable)
    filter_servers: Annotated[tuple[str, ...] | None, "filterServerList"] = ()


def body_crc(body: Body) -> int:
    """The `bodyCrc32` of a body as it is sent."""
    return zlib.crc32(body) & 0x7FFFFFFF


def is_packed(body: Body, *, compressed: bool) -> bool:
    """Whether a body is deflated. RocketMQ: a broker that compresses says `compressed=false` all the same (5.3)."""
    return bool(body) and (compressed or body[0] == _ZLIB_MAGIC)


def decode_registration(
    body: Body, *, compressed: bool, requester_version: int, max_topics: int = MAX_TOPICS
) -> BrokerRegistration:
    """The registration in any of its forms; raises MalformedBody, also for more topics than allowed."""
    if not body:
        return BrokerRegistration()
    if is_packed(body, compressed=compressed):
        return _unpacked(body, requester_version, max_topics)
    if requester_version < Version.V3_0_11:
        registration = BrokerRegistration(TopicTable.decode(body))
    else:
        registration = BrokerRegistration.decode(body)
    _check_count(len(registration.table.topics), max_topics)
    return registration


def _check_count(topics: int, most: int) -> None:
    if topics > most:
        raise MalformedBody(
            f"a registration of {topics} topics, {most} are allowed; maxRegistrationTopics of the name server sets the "
            "number"
        )


def _unpacked(body: Body, requester_version: int, max_topics: int) -> BrokerRegistration:
    try:
        pieces = _Pieces(_inflated(body))
        data_version: DataVersion = DATA_VERSION.decode(pieces.counted())
        topics = {topic.name: topic for topic in (_topic(pieces.counted()) for _ in pieces.numbers(max_topics))}
        filter_servers = tuple(list_of(TEXT).read(loads(pieces.counted())))
        infos = {}
        if requester_version >= Version.V5_0_0:
            for _ in pieces.numbers(max_topics):
                info = loads(pieces.counted())
                if isinstance(info, dict):
                    infos[TEXT.read(info.get("topic"))] = info
    except MalformedBody:
        raise
    except (DataError, struct_error, zlib.error, UnicodeDecodeError, ValueError) as error:
        raise MalformedBody(f"the compressed registration is broken: {error}") from None
    table = TopicTable(data_version, topics, mapping_infos=infos, mapping_details={})
    return BrokerRegistration(table, filter_servers)


def _inflated(body: Body) -> bytes:
    inflater = zlib.decompressobj()
    data = inflater.decompress(body, MAX_UNPACKED_BYTES)
    if inflater.unconsumed_tail:
        raise MalformedBody(f"a registration of more than {MAX_UNPACKED_BYTES} bytes")
    if not inflater.eof:
        raise ValueError("it ends too early")
    return data


class _Pieces:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def counted(self) -> bytes:
        size = self._int()
        if not 0 <= size <= len(self._data) - self._at:
            raise ValueError(f"a piece of {size} bytes where {len(self._data) - self._at} are left")
        self._at += size
        return self._data[self._at - size : self._at]

    def numbers(self, most: int) -> Iterator[int]:
        """0, 1, … as often as the count that stands here says."""
        count = self._int()
        if not 0 <= count <= (len(self._data) - self._at) // _SIZE.size:
            raise ValueError(f"{count} pieces where {len(self._data) - self._at} bytes are left")
        _check_count(count, most)
        return iter(range(count))

    def _int(self) -> int:
        value: int = _SIZE.unpack_from(self._data, self._at)[0]
        self._at += _SIZE.size
        return value


def _topic(text: bytes) -> TopicConfig:
    words = text.decode().split(" ", 5)
    if len(words) < 5:
        raise ValueError(f"a topic of {len(words)} words")
    name, reads, writes, permission, filter_type = words[:5]
    attributes: dict[str, str] = {}
    if len(words) > 5:
        try:
            attributes = _ATTRIBUTES.read(loads(words[5]))
        except DataError:
            attributes = {}  # RocketMQ: broken attributes are ignored
    numbers = (INTEGER.read(reads), INTEGER.read(writes), INTEGER.read(permission))
    return TopicConfig(name, *numbers, filter_type, attributes=attributes)
