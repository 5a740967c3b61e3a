"""Topics of a broker as tables, lists and single ones."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from skyrocket.fastjson.bean import TEXT, TEXT_KEY, Field, bean, map_of, tuple_of
from skyrocket.model import json_tables
from skyrocket.model.data_version import DataVersion
from skyrocket.model.topic_config import TopicConfig
from skyrocket.protocol.bodies.json_body import BodyBase, JsonBody, body
from skyrocket.protocol.bodies.kinds import ANYTHING

DATA_VERSION_KIND = json_tables.DATA_VERSION
DATA_VERSION = JsonBody(DATA_VERSION_KIND)

TOPIC_CONFIG_KIND = json_tables.TOPIC_CONFIG
TOPIC_CONFIG = JsonBody(TOPIC_CONFIG_KIND)


@body
class TopicTable(BodyBase):
    """Topics by name, as a broker registers them and a slave copies them; mappings are of static topics."""

    data_version: DataVersion = field(default_factory=DataVersion)
    topics: Mapping[str, TopicConfig] = field(default_factory=dict)
    mapping_data_version: DataVersion | None = None
    mapping_details: Mapping[str, Any] | None = None
    mapping_infos: Mapping[str, Any] | None = None


TOPIC_TABLE_KIND = bean(
    TopicTable,
    Field("dataVersion", "data_version", DATA_VERSION_KIND),
    Field("mappingDataVersion", "mapping_data_version", DATA_VERSION_KIND),
    Field("topicConfigTable", "topics", map_of(TEXT_KEY, TOPIC_CONFIG_KIND)),
    Field("topicQueueMappingDetailMap", "mapping_details", map_of(TEXT_KEY, ANYTHING)),
    Field("topicQueueMappingInfoMap", "mapping_infos", map_of(TEXT_KEY, ANYTHING)),
)
TOPIC_TABLE = JsonBody(TOPIC_TABLE_KIND)


@body
class TopicConfigList(BodyBase):
    """UPDATE_AND_CREATE_TOPIC_LIST."""

    topics: tuple[TopicConfig, ...] = ()


TOPIC_CONFIG_LIST = JsonBody(bean(TopicConfigList, Field("topicConfigList", "topics", tuple_of(TOPIC_CONFIG_KIND))))


@body
class TopicList(BodyBase):
    """Names of topics; `broker_address` is whom to ask for the rest."""

    topics: tuple[str, ...] = ()
    broker_address: str | None = None


TOPIC_LIST = JsonBody(
    bean(TopicList, Field("brokerAddr", "broker_address", TEXT), Field("topicList", "topics", tuple_of(TEXT)))
)
