"""The packed form of a broker's registration, as Java's brokers send it; ours send JSON, so only tests write it."""

import json
import zlib
from struct import Struct

from skyrocket.fastjson import dumps
from skyrocket.model.topic_config import TopicConfig
from skyrocket.protocol.bodies.registration import BrokerRegistration
from skyrocket.protocol.bodies.topics import DATA_VERSION
from skyrocket.protocol.codes import Version

_SIZE = Struct(">i")


def encode_compressed(registration: BrokerRegistration, *, version: int = Version.V5_4_0) -> bytes:
    """As a broker of that version sends it."""
    table = registration.table
    texts = [_topic_text(topic, with_attributes=version >= Version.V5_0_0) for topic in table.topics.values()]
    parts = [_counted(DATA_VERSION.encode(table.data_version)), _SIZE.pack(len(texts)), *map(_counted, texts)]
    parts.append(_counted(dumps(list(registration.filter_servers or ()))))
    if version >= Version.V5_0_0:
        infos = list((table.mapping_infos or {}).values())
        parts += [_SIZE.pack(len(infos)), *(_counted(dumps(info)) for info in infos)]
    return zlib.compress(b"".join(parts), 9)


def _counted(data: bytes) -> bytes:
    return _SIZE.pack(len(data)) + data


def _topic_text(topic: TopicConfig, *, with_attributes: bool) -> bytes:
    words = [topic.name, str(topic.read_queues), str(topic.write_queues), str(topic.permission), topic.filter_type]
    if with_attributes:
        words.append(json.dumps(dict(topic.attributes), separators=(",", ":")))
    return " ".join(words).encode()
