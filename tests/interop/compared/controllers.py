"""A controller and a set of two replicas under it; both of Apache's 5.4.0, or both of ours.

Further placeholders: {c} the controller, {next} the id of the replica that this tool makes master, {ghost} the name of
a set of which nothing lives.
"""

from tests.interop.compared.verb import OURS, SINCE_5, V5, Compared, differs, same

_SET = "-bn broker-a -c DefaultCluster"

_COMMANDS = (
    "getControllerMetaData -a {c}",
    "getControllerConfig -a {c}",
    "getSyncStateSet -a {c} -b broker-a",
    "getSyncStateSet -a {c} -n {n} -c DefaultCluster",
    "getSyncStateSet -a {c} -b Nothing",
    "getBrokerEpoch -n {n} -b broker-a",
    "getBrokerEpoch -n {n} -c DefaultCluster",
    "haStatus -n {n} -c DefaultCluster",
    "updateControllerConfig -a {c} -k enableElectUncleanMaster -v true",
    "updateControllerConfig -a {c} -k controllerDLegerGroup -v another",
    f"cleanBrokerMetadata -a {{c}} {_SET}",
    "cleanBrokerMetadata -a {c} -bn {ghost} -c DefaultCluster -b 1",
    "cleanBrokerMetadata -a {c} -bn {ghost} -c DefaultCluster",
    "cleanBrokerMetadata -a {c} -bn Nothing -c DefaultCluster",
    f"electMaster -a {{c}} -b 9 {_SET}",
)
_ELECTION = f"electMaster -a {{c}} -b {{next}} {_SET}"

CONTROLLERS: tuple[Compared, ...] = (
    *(same(command, SINCE_5) for command in _COMMANDS),
    same(_ELECTION, (OURS,)),
    differs(_ELECTION, "RocketMQ's tool cannot read what its own controller answers: ids without quotes", (V5,)),
)
