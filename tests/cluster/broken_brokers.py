"""Brokers that name servers know and that do not answer."""

import contextlib
import socket
from collections.abc import Iterator

from skyrocket.model.data_version import DataVersion
from skyrocket.model.topic_config import TopicConfig
from skyrocket.protocol.bodies.registration import BrokerRegistration, body_crc
from skyrocket.protocol.bodies.topics import TopicTable
from skyrocket.protocol.frames import encode
from skyrocket.protocol.requests.broker_registration import RegisterBroker
from skyrocket.remoting.exchange import command_of
from skyrocket.testing import LocalCluster
from tests.waiting import wait_until


@contextlib.contextmanager
def registered(rocketmq: LocalCluster, name: str, address: str, *topics: str) -> Iterator[None]:
    """One more broker at the name server, with a queue of each topic, as if it were there."""
    # A broker that is new to a name server may not come with one topic alone.
    configs = {topic: TopicConfig(topic, 1, 1) for topic in (*topics, "TBW102")}
    body = BrokerRegistration(TopicTable(DataVersion(0, 1, 1_700_000_000_000), configs))
    request = RegisterBroker(
        broker_name=name,
        broker_addr=address,
        cluster_name="DefaultCluster",
        ha_server_addr=address,
        broker_id=0,
        enable_acting_master=False,
        body_crc32=body_crc(body.encode()),
    )
    host, port = rocketmq.name_server_address.split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection, rocketmq.admin() as admin:
        connection.sendall(encode(command_of(request, body.encode())))
        wait_until(lambda: name in {place.broker_name for place in admin.brokers()}, "it is registered")
        yield
