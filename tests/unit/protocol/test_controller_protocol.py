"""Requests and bodies of controllers: the texts are those of RocketMQ's catalogue."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.protocol.bodies.controller import (
    BROKER_NAMES,
    END_OF_LAST_EPOCH,
    BrokerReplicasInfo,
    ElectedMaster,
    EpochCache,
    SyncStateSet,
)
from skyrocket.protocol.bodies.json_body import BodyKind
from skyrocket.protocol.errors import MasterStillExists, NotControllerLeader, error_of
from skyrocket.protocol.requests import controller
from skyrocket.protocol.requests.broker_registration import BrokerHeartbeat
from skyrocket.protocol.requests.controller import (
    NO_BROKER_ID,
    AlterSyncStateSet,
    CleanBrokerData,
    ElectMaster,
    GetControllerMetadata,
    GetControllerMetadataAnswer,
    GetReplicaInfoAnswer,
    NotifyBrokerRoleChanged,
)
from skyrocket.protocol.requests.header import Header

EXACT: list[tuple[BodyKind, bytes]] = [
    (SyncStateSet, b'{"syncStateSet":[1,2],"syncStateSetEpoch":3}'),
    (
        ElectedMaster,
        b'{"brokerMemberGroup":{"brokerAddrs":{"1":"192.168.0.1:10911","2":"192.168.0.2:10911"},"brokerName":"broker-a",'
        b'"cluster":"DefaultCluster"},"syncStateSet":[1]}',
    ),
    (ElectedMaster, b'{"syncStateSet":[2]}'),
    (
        BrokerReplicasInfo,
        b'{"replicasInfoTable":{"broker-a":{"inSyncReplicas":[{"alive":true,"brokerAddress":"192.168.0.1:10911",'
        b'"brokerId":1,"brokerName":"broker-a"}],"masterAddress":"192.168.0.1:10911","masterBrokerId":1,'
        b'"masterEpoch":1,"notInSyncReplicas":[],"syncStateSetEpoch":2}}}',
    ),
    (
        EpochCache,
        b'{"brokerId":0,"brokerName":"broker-a","clusterName":"DefaultCluster",'
        b'"epochList":[{"endOffset":9223372036854775807,"epoch":1,"startOffset":0}],"maxOffset":100}',
    ),
    (BROKER_NAMES, b'["broker-a","broker-b"]'),
]


@pytest.mark.parametrize(("kind", "text"), EXACT)
def test_bodies_of_controllers_are_written_again_byte_for_byte(kind: Any, text: bytes) -> None:
    assert kind.encode(kind.decode(text)) == text


def test_the_members_of_an_election_are_read_as_apache_writes_them() -> None:
    body = ElectedMaster.decode(b'{"brokerMemberGroup":{"brokerAddrs":{1:"a:1",2:"b:2"}},"syncStateSet":[1]}')
    assert body.members is not None
    assert body.members.addresses == {1: "a:1", 2: "b:2"}


def test_an_epoch_without_an_end_is_the_last() -> None:
    [entry] = EpochCache.decode(b'{"epochList":[{"epoch":4,"startOffset":7}]}').epochs
    assert (entry.epoch, entry.start_offset, entry.end_offset) == (4, 7, END_OF_LAST_EPOCH)


def test_names_on_the_wire_are_rocketmq_s() -> None:
    metadata = GetControllerMetadataAnswer(group="g", is_leader=True, peers="n0:127.0.0.1:9878;")
    assert metadata.to_fields() == {"group": "g", "isLeader": "true", "peers": "n0:127.0.0.1:9878;"}
    clean = CleanBrokerData(broker_name="b", broker_controller_ids_to_clean="1;2", is_clean_living_broker=True)
    assert set(clean.to_fields()) == {"brokerName", "brokerControllerIdsToClean", "isCleanLivingBroker"}
    assert (
        AlterSyncStateSet.from_fields({"brokerName": "b", "masterBrokerId": "1", "masterEpoch": "2"}).master_epoch == 2
    )
    heartbeat = BrokerHeartbeat(cluster_name="c", broker_addr="a", broker_name="b", heartbeat_timeout_millis=1)
    assert heartbeat.to_fields()["heartbeatTimeoutMills"] == "1"


def test_an_election_that_names_nobody_is_the_controller_s_own() -> None:
    assert ElectMaster.from_fields(None) == ElectMaster(broker_id=NO_BROKER_ID, designate_elect=False)


def test_a_set_without_a_master_has_no_fields_for_one() -> None:
    assert GetReplicaInfoAnswer().to_fields() == {}
    assert NotifyBrokerRoleChanged.from_fields({}).master_broker_id is None
    assert GetControllerMetadata().ext_fields() is None


def test_refusals_of_controllers_have_classes_of_their_own() -> None:
    assert isinstance(error_of(2007, "x"), NotControllerLeader)
    assert isinstance(error_of(2011, "x"), MasterStillExists)


HEADERS = [kind for kind in vars(controller).values() if isinstance(kind, type) and issubclass(kind, Header)]
VALUES = {
    "text": st.text(max_size=8),
    "int": st.integers(-(1 << 31), (1 << 31) - 1),
    "long": st.integers(-(1 << 63), (1 << 63) - 1),
    "flag": st.booleans(),
}


@given(st.data())
def test_every_header_of_controllers_comes_back_as_it_went(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from([kind for kind in HEADERS if kind.wire_fields]))
    values = {}
    for field in kind.wire_fields:
        usual = VALUES[field.kind]
        values[field.attribute] = data.draw(st.none() | usual if field.nullable else usual)
    header = kind(**values)
    assert kind.from_fields(header.to_fields()) == header
