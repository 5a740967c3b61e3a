"""Topics of a broker as tables, lists and single ones."""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any

from skyrocket.fastjson.bean import bean
from skyrocket.model.data_version import DataVersion
from skyrocket.model.topic_config import TopicConfig
from skyrocket.protocol.bodies.json_body import BodyBase, JsonBody, body

DATA_VERSION = JsonBody(bean(DataVersion))
TOPIC_CONFIG = JsonBody(bean(TopicConfig))


@body
class TopicTable(BodyBase):
    """Topics by name, as a broker registers them and a slave copies them; mappings are of static topics."""

    data_version: DataVersion = field(default_factory=DataVersion)
    topics: Annotated[Mapping[str, TopicConfig], "topicConfigTable"] = field(default_factory=dict)
    mapping_data_version: DataVersion | None = None
    mapping_details: Annotated[Mapping[str, Any] | None, "topicQueueMappingDetailMap"] = None
    mapping_infos: Annotated[Mapping[str, Any] | None, "topicQueueMappingInfoMap"] = None


@body
class TopicConfigList(BodyBase):
    """UPDATE_AND_CREATE_TOPIC_LIST."""

    topics: Annotated[tuple[TopicConfig, ...], "topicConfigList"] = ()


@body
class TopicList(BodyBase):
    """Names of topics; `broker_address` is whom to ask for the rest."""

    topics: Annotated[tuple[str, ...], "topicList"] = ()
    broker_address: Annotated[str | None, "brokerAddr"] = None
