"""mqadmin's commands of controllers."""

from skyrocket.cli.mqadmin.cluster import repeated
from skyrocket.cli.mqadmin.java_text import flag, java_list
from skyrocket.cli.mqadmin.options import Given
from skyrocket.cli.mqadmin.printing import Printer
from skyrocket.client import Admin
from skyrocket.errors import ConfigError
from skyrocket.protocol.bodies.controller import ReplicaIdentity


async def get_controller_meta_data(admin: Admin, given: Given, out: Printer) -> None:
    found = await admin.controller_metadata(_addresses(given)[0])
    out.text(f"\n#ControllerGroup\t{found.group}")
    out.text(f"\n#ControllerLeaderId\t{found.controller_leader_id}")
    out.text(f"\n#ControllerLeaderAddress\t{found.controller_leader_address}")
    for peer in filter(None, (found.peers or "").split(";")):
        out.text(f"\n#Peer:\t{peer}")
    out.line()


def _addresses(given: Given) -> list[str]:
    found = [each.strip() for each in given["controllerAddress"].split(";") if each.strip()]
    if not found:
        raise ConfigError("--controllerAddress names nobody")
    return found


async def get_sync_state_set(admin: Admin, given: Given, out: Printer) -> None:
    async def look() -> None:
        if "brokerName" in given:
            names = [given["brokerName"]]
        elif "clusterName" in given:
            names = sorted({place.broker_name for place in await admin.brokers(cluster=given["clusterName"])})
        else:
            raise ConfigError("Missing required option: [-b, -c]")
        for name, info in (await admin.replica_sets(_addresses(given)[0], names)).items():
            out.text(f"\n#brokerName\t{name}\n#MasterBrokerId\t{info.master_broker_id}\n")
            out.text(f"#MasterAddr\t{info.master_address}\n#MasterEpoch\t{info.master_epoch}\n")
            out.text(f"#SyncStateSetEpoch\t{info.sync_state_set_epoch}\n")
            out.text(f"#SyncStateSetNums\t{len(info.in_sync_replicas)}\n")
            for each in info.in_sync_replicas:
                out.text(f"\nInSyncReplica:\t{_replica(each)}\n")
            for each in info.not_in_sync_replicas:
                out.text(f"\nNotInSyncReplica:\t{_replica(each)}\n")

    await repeated(admin, given, look)


def _replica(each: ReplicaIdentity) -> str:
    return (
        f"ReplicaIdentity{{brokerName='{each.broker_name}', brokerId={each.broker_id}, "
        f"brokerAddress='{each.broker_address}', alive={flag(each.alive)}}}"
    )


async def elect_master(admin: Admin, given: Given, out: Printer) -> None:
    cluster, name = given["clusterName"], given["brokerName"]
    header, body = await admin.elect_master(_addresses(given)[0], cluster, name, given.number("brokerId"))
    out.text(f"\n#ClusterName\t{cluster}\n#BrokerName\t{name}\n#BrokerMasterAddr\t{header.master_address}")
    out.text(f"\n#MasterEpoch\t{header.master_epoch}\n#SyncStateSetEpoch\t{header.sync_state_set_epoch}\n")
    for number, address in (body.members.addresses if body.members is not None else {}).items():
        out.text(f"\t#Broker\t{number}\t{address}\n")


async def clean_broker_metadata(admin: Admin, given: Given, out: Printer) -> None:
    name = given["brokerName"]
    ids = [each.strip() for each in given.text("brokerControllerIdsToClean", "").split(";") if each.strip()]
    if not all(each.isdecimal() for each in ids):
        raise ConfigError("please set the option <brokerControllerIdsToClean> according to the format: 1;2;3")
    await admin.forget_replicas(
        _addresses(given)[0],
        name,
        cluster=given.get("clusterName"),
        broker_ids=[int(each) for each in ids],
        even_if_alive="cleanLivingBroker" in given,
    )
    out.line(f"clear broker {name} metadata from controller success! ")


async def get_controller_config(admin: Admin, given: Given, out: Printer) -> None:
    for address, settings in (await admin.controller_settings(_addresses(given))).items():
        out.line(f"============{address}============")
        out.pairs("%-50s=  %s", sorted(settings.items()))


async def update_controller_config(admin: Admin, given: Given, out: Printer) -> None:
    key, value = given["key"], given["value"]
    done = await admin.change_controller_settings(_addresses(given), {key: value})
    out.line(f"update controller config success!{java_list(done)}")
    out.line(f"{key} : {value}")
